"""From a profile and a question to an answer.

Where to look: ``question`` says what is asked and answered. ``choice.chooser.Chooser`` decides who answers,
``fit.models.Models`` fits and keeps models, ``answer.answers.Answers`` is the way through all of it, for every asker.
"""
