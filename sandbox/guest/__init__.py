"""The only code that enters a pod; it needs the standard library and what a lab image has.

That is torch, torchvision, DALI, numpy and Pillow.
`learner/` shares an interpreter with learner code, so nothing that it says is believed. `trusted/` never does.
"""
