"""What an answer rests on, where its model was fitted for another query or another job."""

from dataclasses import fields, replace

from nodewise.domain.profile import Profile
from nodewise.estimation.fit.fitted_model import relabel
from nodewise.estimation.question import Basis

OF_MODEL = {
    *("estimator", "estimator_version", "prior_id", "catalogue_digest", "fit_time_s", "stale", "mixture"),
    *("digest", "generation", "track"),
}
OF_PROFILE = {"profile_revision", "profile_digest"}
OF_CHOICE = {"choice", "fallback", "evidence"}
BASIS = Basis(
    estimator="one", estimator_version="1", choice="asked for by name", profile_revision=3, profile_digest="theirs"
)


def test_every_field_of_a_basis_is_known_to_belong_to_model_profile_or_choice() -> None:
    # A new field must be given its place here and, unless it is the model's, in relabel: answers about another job
    # would else tell what their model rests on as if it were theirs.
    assert {field.name for field in fields(Basis)} == OF_MODEL | OF_PROFILE | OF_CHOICE


def test_a_relabelled_basis_names_the_profile_that_is_asked_about_and_keeps_what_is_the_models() -> None:
    relabelled = relabel(BASIS, Profile(revision=7, digest="own"))
    assert relabelled == replace(BASIS, profile_revision=7, profile_digest="own")
