"""A run as one page of HTML, for a ticket: what happened, who failed first and why, phases over time, charts, cost."""
