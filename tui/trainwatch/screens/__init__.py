"""Whole screens: they lay widgets out, give them the app's state and turn keys into actions."""
