//! Answers about many jobs, job by job.

use crate::{
    error::Error,
    rows::{NONE, Rows, Shown},
    v1::{Basis, BatchJobOutcome, BatchPredictResponse, Notice, Predictions},
};

impl BatchPredictResponse {
    /// The jobs in the order asked. One that cannot be answered carries its error; the others are answered.
    pub fn jobs(&self) -> Jobs<'_> {
        Jobs { response: self, next: 0 }
    }

    /// All rows; about architectures, where there are no jobs: architecture a on configuration c is row
    /// a x configurations + c.
    pub fn rows(&self) -> Rows<'_> {
        self.columns().rows()
    }

    fn columns(&self) -> &Predictions {
        self.predictions.as_ref().unwrap_or(&NONE)
    }
}

/// Jobs of a batch, in order.
#[derive(Clone, Debug)]
pub struct Jobs<'a> {
    response: &'a BatchPredictResponse,
    next: usize,
}

impl<'a> Iterator for Jobs<'a> {
    type Item = Job<'a>;

    fn next(&mut self) -> Option<Job<'a>> {
        let index = self.next;
        let outcome = self.response.outcomes.get(index)?;
        self.next += 1;
        Some(Job {
            response: self.response,
            outcome,
            index,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.response.outcomes.len() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Jobs<'_> {}

/// What became of one job of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    response: &'a BatchPredictResponse,
    outcome: &'a BatchJobOutcome,
    index: usize,
}

impl<'a> Job<'a> {
    /// Its number in the request.
    pub fn index(&self) -> usize {
        self.index
    }

    /// What the reply says of it: recommendation (counted from the job's first row), basis of its interval, and whether it
    /// is unchanged.
    pub fn outcome(&self) -> &'a BatchJobOutcome {
        self.outcome
    }

    /// Its rows; none where it is unchanged.
    ///
    /// # Errors
    /// Why the job could not be answered.
    pub fn rows(&self) -> Result<Rows<'a>, Error> {
        match &self.outcome.problem {
            Some(problem) => Err(problem.into()),
            None => Ok(Rows::new(self.response.columns(), self.range(), Shown::of(&self.outcome.columns))),
        }
    }

    fn range(&self) -> std::ops::Range<usize> {
        let offset = |at: usize| self.response.row_offsets.get(at).and_then(|offset| usize::try_from(*offset).ok());
        let begin = offset(self.index).unwrap_or_default();
        begin..offset(self.index + 1).unwrap_or(begin)
    }

    /// What its answer rests on; `None` = it has none.
    pub fn basis(&self) -> Option<&'a Basis> {
        self.response.bases.get(usize::try_from(self.outcome.basis_index?).ok()?)
    }

    /// What the reader of its rows should know, and the concerned ones counted from its first; none = all.
    pub fn warnings(&self) -> impl Iterator<Item = (&'a Notice, Vec<usize>)> + use<'a> {
        let range = self.range();
        let columns = self.response.columns();
        columns.warnings.iter().filter_map(move |notice| {
            let rows = notice.rows.iter().filter_map(|row| usize::try_from(*row).ok());
            let own: Vec<usize> = rows.filter(|row| range.contains(row)).map(|row| row - range.start).collect();
            (!range.is_empty() && (notice.rows.is_empty() || !own.is_empty())).then_some((notice, own))
        })
    }
}
