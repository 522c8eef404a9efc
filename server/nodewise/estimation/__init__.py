"""From a profile and a question to an answer.

``question`` says what is asked and answered, ``resolution`` fills in what a question leaves open.
``choice.chooser.Chooser`` decides who answers, ``fit.models.Models`` fits and keeps models, and
``answer.answers.Answers`` is the way through all of it, for every asker.
"""
