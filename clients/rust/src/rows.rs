//! Answers row by row. Nothing is copied: a row reads the columns that it lies in.

use std::{ops::Range, sync::LazyLock};

use crate::v1::{IntervalBasis, NamedColumn, PredictResponse, PredictionColumn, Predictions, QuantileColumn, RowRefusal, RowStatus};

/// What is read where a reply brings no rows at all.
pub(crate) static NONE: LazyLock<Predictions> = LazyLock::new(Predictions::default);

/// Rows of an answer, in order.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    columns: &'a Predictions,
    range: Range<usize>,
    shown: Shown,
}

/// The columns that the rows of one job have; those of other jobs of the batch hold 0 there. A bit for each kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown(u32);

impl Shown {
    pub(crate) const ALL: Self = Self(u32::MAX);

    pub(crate) fn of(columns: &[i32]) -> Self {
        Self(
            columns
                .iter()
                .filter_map(|column| 1u32.checked_shl(u32::try_from(*column).ok()?))
                .fold(0, |all, bit| all | bit),
        )
    }

    #[inline]
    fn has(self, column: PredictionColumn) -> bool {
        self.0 >> (column as u32) & 1 == 1
    }
}

impl<'a> Rows<'a> {
    pub(crate) fn new(columns: &'a Predictions, range: Range<usize>, shown: Shown) -> Self {
        Self { columns, range, shown }
    }

    /// The row of this number, counted from the first; `None` = there are not so many.
    #[inline]
    pub fn get(&self, number: usize) -> Option<Prediction<'a>> {
        self.clone().nth(number)
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Prediction<'a>;

    #[inline]
    fn next(&mut self) -> Option<Prediction<'a>> {
        self.nth(0)
    }

    #[inline]
    fn nth(&mut self, number: usize) -> Option<Prediction<'a>> {
        let index = self.range.nth(number)?;
        Some(Prediction {
            columns: self.columns,
            index,
            shown: self.shown,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl ExactSizeIterator for Rows<'_> {}

impl Predictions {
    /// The rows.
    pub fn rows(&self) -> Rows<'_> {
        Rows::new(self, 0..usize::try_from(self.rows_count).unwrap_or_default(), Shown::ALL)
    }
}

impl PredictResponse {
    /// The rows of the answer; none where it is unchanged.
    pub fn rows(&self) -> Rows<'_> {
        self.predictions.as_ref().unwrap_or(&NONE).rows()
    }

    /// The recommended row; `None` = none is recommended.
    pub fn recommended(&self) -> Option<Prediction<'_>> {
        let row = self.recommendation.as_ref()?.row;
        self.rows().get(usize::try_from(row).ok()?)
    }
}

/// One row of an answer. `None` = not asked for, not known, or not predicted: never 0, never NaN.
#[derive(Clone, Copy, Debug)]
pub struct Prediction<'a> {
    columns: &'a Predictions,
    index: usize,
    shown: Shown,
}

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $column:ident $(in $group:ident)? $(with $other:ident)?, $zero:literal;)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name(&self) -> Option<$kind> {
                $(if !self.shown.has(PredictionColumn::$group) { return None; })?
                let value = *self.columns.$column.get(self.index)?;
                if !self.is_answered() || ($zero && value == <$kind>::default()) {
                    return None;
                }
                $(self.$other()?;)?
                Some(value)
            }
        )*
    };
}

impl<'a> Prediction<'a> {
    figures! {
        /// Seconds of a step: asynchronous and hybrid, the cycle of one worker; otherwise one global batch.
        step_seconds: f64 = step_seconds, true;
        /// Steps per second of the whole job.
        steps_per_second: f64 = steps_per_second, true;
        /// Samples per second of the whole job; `None` also where the batch is not known.
        samples_per_second: f64 = samples_per_second, true;
        /// Lower bound of [`steps_per_second`](Self::steps_per_second).
        lower_steps_per_second: f64 = lower_steps_per_second in Interval with upper_steps_per_second, false;
        /// Upper bound of [`steps_per_second`](Self::steps_per_second).
        upper_steps_per_second: f64 = upper_steps_per_second in Interval, true;
        /// Mean updates by others between a worker's download and its upload.
        staleness_mean_steps: f64 = staleness_mean_steps in Staleness, false;
        /// 95th percentile of the same.
        staleness_p95_steps: f64 = staleness_p95_steps in Staleness, false;
        /// How far outside the evidence: 1 = within, 2 = twice the largest scale that it identifies.
        extrapolation_ratio: f64 = extrapolation_ratios, true;
        /// Seconds to do the work asked about, else all of the workload's epochs where they are known.
        finish_seconds: f64 = finish_seconds in Work, true;
        /// Cost of that work, in the currency of the offers.
        cost: f64 = costs in Work with finish_seconds, false;
        /// Seconds spent once besides the steps; part of [`finish_seconds`](Self::finish_seconds).
        once_seconds: f64 = once_seconds, true;
        /// Mean revocations of nodes until the work is done.
        revocations_mean: f64 = revocations_means in Risk, false;
        /// Global batch as resolved or chosen, samples.
        global_batch_samples: f64 = global_batch_samples in Goodput, true;
        /// Samples per worker and micro-step as resolved or chosen.
        batch_per_worker_samples: f64 = batch_per_worker_samples in Goodput, true;
        /// Micro-steps between two exchanges as resolved or chosen.
        accumulation_steps: i32 = accumulation_steps in Goodput, true;
        /// Samples per second times statistical efficiency.
        goodput_samples_per_second: f64 = goodput_samples_per_second in Goodput, true;
    }

    /// Its number among all rows of the reply.
    pub fn index(&self) -> usize {
        self.index
    }

    /// What became of it; `Unspecified` = something that this version of the client does not know.
    #[inline]
    pub fn status(&self) -> RowStatus {
        RowStatus::try_from(self.status_number()).unwrap_or_default()
    }

    /// The same as its number in the contract.
    #[inline]
    pub fn status_number(&self) -> i32 {
        let stated = self.columns.statuses.get(self.index).copied().unwrap_or_default();
        if stated == 0 { RowStatus::Answered.into() } else { stated }
    }

    /// Whether it was predicted.
    #[inline]
    pub fn is_answered(&self) -> bool {
        self.columns.statuses.is_empty() || self.status_number() == RowStatus::Answered as i32
    }

    /// Why it was not predicted.
    pub fn refusal(&self) -> Option<&'a RowRefusal> {
        if self.is_answered() {
            return None;
        }
        let row = i32::try_from(self.index).ok()?;
        let mut refusals = self.columns.refusals.iter();
        // Rows of a refusal mostly ascend.
        refusals.find(|refusal| refusal.rows.binary_search(&row).is_ok() || refusal.rows.contains(&row))
    }

    /// Nodes as resolved.
    #[inline]
    pub fn nodes(&self) -> Option<i32> {
        self.columns.nodes.get(self.index).copied().filter(|nodes| *nodes != 0)
    }

    /// Workers as resolved.
    #[inline]
    pub fn workers(&self) -> Option<i32> {
        self.columns.workers.get(self.index).copied().filter(|workers| *workers != 0)
    }

    /// Memory per device, bytes; also of a row that does not fit.
    #[inline]
    pub fn memory_bytes(&self) -> Option<f64> {
        self.memory(&self.columns.memory_bytes)
    }

    /// Memory missing per device, bytes.
    #[inline]
    pub fn excess_memory_bytes(&self) -> Option<f64> {
        self.memory(&self.columns.excess_memory_bytes)
    }

    #[inline]
    fn memory(&self, column: &[f64]) -> Option<f64> {
        let value = *column.get(self.index)?;
        (self.shown.has(PredictionColumn::Memory) && value != 0.0).then_some(value)
    }

    /// What the step waits for most, e.g. `upload`.
    #[inline]
    pub fn bottleneck(&self) -> Option<&'a str> {
        if !self.is_answered() || !self.shown.has(PredictionColumn::Breakdown) {
            return None;
        }
        let index = usize::try_from(*self.columns.bottleneck_indexes.get(self.index)?).ok()?;
        self.columns
            .bottleneck_names
            .get(index)
            .map(String::as_str)
            .filter(|name| !name.is_empty())
    }

    /// Probability that the measured throughput lies within the bounds.
    pub fn interval_coverage(&self) -> Option<f64> {
        self.upper_steps_per_second().and(self.columns.interval_coverage)
    }

    /// Where the interval comes from; of a job of a batch, its outcome says so instead.
    pub fn interval_basis(&self) -> Option<IntervalBasis> {
        self.upper_steps_per_second().map(|_| self.columns.interval_basis())
    }

    /// Lower bound of [`samples_per_second`](Self::samples_per_second).
    #[inline]
    pub fn lower_samples_per_second(&self) -> Option<f64> {
        self.in_samples(self.lower_steps_per_second())
    }

    /// Upper bound of [`samples_per_second`](Self::samples_per_second).
    #[inline]
    pub fn upper_samples_per_second(&self) -> Option<f64> {
        self.in_samples(self.upper_steps_per_second())
    }

    #[inline]
    fn in_samples(&self, steps: Option<f64>) -> Option<f64> {
        Some(steps? * (self.samples_per_second()? / self.steps_per_second()?))
    }

    /// Parts of [`step_seconds`](Self::step_seconds) as exposed time, by name; they add up to it.
    pub fn breakdown_seconds(&self) -> impl Iterator<Item = (&'a str, f64)> + use<'a> {
        self.named(&self.columns.breakdown_seconds, PredictionColumn::Breakdown)
    }

    /// Share of time that each station is busy, 0 to 1, by name.
    pub fn utilization(&self) -> impl Iterator<Item = (&'a str, f64)> + use<'a> {
        self.named(&self.columns.utilization, PredictionColumn::Utilization)
    }

    /// What else the estimator has to say, by names that carry units.
    pub fn extra(&self) -> impl Iterator<Item = (&'a str, f64)> + use<'a> {
        self.named(&self.columns.extra, PredictionColumn::Extra)
    }

    fn named(&self, columns: &'a [NamedColumn], kind: PredictionColumn) -> impl Iterator<Item = (&'a str, f64)> + use<'a> {
        let columns = if self.is_answered() && self.shown.has(kind) { columns } else { &[] };
        let index = self.index;
        columns
            .iter()
            .filter_map(move |column| Some((column.name.as_str(), *column.values.get(index)?)))
    }

    /// Quantiles of [`finish_seconds`](Self::finish_seconds): probability and value.
    pub fn finish_seconds_quantiles(&self) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        self.quantiles(&self.columns.finish_seconds_quantiles)
    }

    /// Quantiles of [`cost`](Self::cost): probability and value.
    pub fn cost_quantiles(&self) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        self.quantiles(&self.columns.cost_quantiles)
    }

    fn quantiles(&self, columns: &'a [QuantileColumn]) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        let is_told = self.shown.has(PredictionColumn::Risk) && self.finish_seconds().is_some();
        let (columns, index) = (if is_told { columns } else { &[] }, self.index);
        columns
            .iter()
            .filter_map(move |column| Some((column.probability, *column.values.get(index)?)))
    }
}
