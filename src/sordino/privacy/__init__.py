"""What is promised: who is protected, how far one person moves an answer, and the privacy loss of a release."""
