"""Runners on hosts of their own: what such a host may reach of the control host, and how it is known there."""
