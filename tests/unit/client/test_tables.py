"""Answers as tables of pandas, of pyarrow and of notebooks."""

from __future__ import annotations

import re
import sys

import pytest
from canned_answers import BASIS, two_rows

from nodewise_client import BatchJob, BatchPredictRequest, PredictRequest, RefusedError, configurations, profile_source
from nodewise_client._row_kinds import Prediction
from nodewise_client._rows import Rows
from nodewise_client._tables import SHOWN_ROWS, column_table
from nodewise_protos.v1 import objective_pb2, prediction_pb2, prediction_service_pb2

REQUEST = PredictRequest(profile=profile_source("resnet"), configurations=configurations(nodes=[4, 8]))


def answer(predictions: prediction_pb2.Predictions, why: str = "fastest") -> prediction_service_pb2.PredictResponse:
    recommendation = objective_pb2.Recommendation(row=0, rule=objective_pb2.OBJECTIVE_RULE_KNEE, why=why)
    return prediction_service_pb2.PredictResponse(predictions=predictions, recommendation=recommendation, basis=BASIS)


@pytest.fixture
def result(client, server):
    server.answer("Predict", answer(two_rows()))
    return client.predict(REQUEST)


def test_rows_become_columns_by_the_names_that_rows_have(result) -> None:
    columns = column_table(result.rows)
    assert (columns["nodes"], columns["status"]) == ([4, 8], ["answered", "refused"])
    assert columns["refusal"] == [None, "EVIDENCE_MISSING"]
    assert columns["samples_per_second"] == [256.0, None]
    assert columns["breakdown_seconds.compute"] == [0.4, None]
    assert columns["finish_seconds_quantiles.0.5"] == [95.0, None]
    assert (columns["cost"], columns["extrapolation_ratio"]) == ([1.5, None], [2.0, None])
    assert "accumulation_steps" not in columns
    assert all(hasattr(result.rows[0], name.partition(".")[0]) for name in columns)


def test_pandas_and_arrow_get_the_same_columns(result) -> None:
    pytest.importorskip("pandas", reason="pandas is an extra of the tests")
    pytest.importorskip("pyarrow", reason="pyarrow is an extra of the tests")
    frame, table = result.to_pandas(), result.to_arrow()
    assert list(frame.columns) == table.column_names == list(column_table(result.rows))
    assert frame["workers"].tolist() == table["workers"].to_pylist() == [4, 8]
    assert frame["step_seconds"].isna().tolist() == [False, True]


def test_a_library_that_is_missing_is_named(result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        result.to_pandas()


def test_a_notebook_shows_the_recommended_row_and_escapes_text(client, server) -> None:
    predictions = two_rows()
    predictions.bottleneck_names[0] = "<script>"
    server.answer("Predict", answer(predictions, why="faster & <b>cheaper</b>"))
    page = client.predict(REQUEST)._repr_html_()
    assert page.count("<tr") == 3
    assert "font-weight:bold" in page.partition("</tr>")[2].partition("</tr>")[0]
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "faster &amp; &lt;b&gt;cheaper" in page
    assert "twice the scale" in page


def test_a_long_table_is_cut_in_a_notebook() -> None:
    predictions = prediction_pb2.Predictions(rows_count=1000, nodes=range(1, 1001), steps_per_second=[1.0] * 1000)
    page = Rows.of_message(Prediction, predictions, 1000)._repr_html_()
    assert page.count("<tr") == 1 + SHOWN_ROWS
    assert "950 more rows" in page
    assert "no rows" in Rows.of_message(Prediction, prediction_pb2.Predictions(), 0)._repr_html_()


def test_an_answer_draws_itself(result) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is an extra")
    matplotlib.use("agg")
    axes = result.plot()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("workers", "throughput (samples per second)")
    labels = axes.get_legend_handles_labels()[1]
    assert "predicted, extrapolated" in labels
    assert any(re.match("recommended: 4", label) for label in labels)


def test_an_error_of_a_batch_is_shown(client, server) -> None:
    problem = {"reason": "EVIDENCE_MISSING", "message": "no <link>"}
    outcomes = [prediction_service_pb2.BatchJobOutcome(problem=problem)]
    server.answer("BatchPredict", prediction_service_pb2.BatchPredictResponse(outcomes=outcomes))
    outcome = client.batch_predict(BatchPredictRequest(jobs=[BatchJob(profile=profile_source("x"))]))[0]
    assert "no &lt;link&gt;" in outcome._repr_html_()
    with pytest.raises(RefusedError):
        outcome.unwrap()
