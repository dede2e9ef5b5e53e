"""The author kit: what authors run, what it catches, and the page that teaches it."""
