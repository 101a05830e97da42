"""The pages: templates, a stylesheet and scripts of our own. They show what the desk says."""
