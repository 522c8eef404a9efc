"""Answer questions about jobs from their profiles.

``question`` defines questions and answers, and ``resolution`` fills in what a question leaves open.
``choice.chooser.Chooser`` chooses the estimator, and ``fit.models.Models`` fits and caches models.
``answer.answers.Answers`` combines these steps for every kind of call.
"""
