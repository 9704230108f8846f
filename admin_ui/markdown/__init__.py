"""Markdown of agents made safe for a page. Pure: no Django."""
