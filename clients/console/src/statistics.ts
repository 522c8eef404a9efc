/** A mean with its 95 % confidence interval by Student's t, which needs two values. */
export interface Mean {
  value: number;
  lower?: number;
  upper?: number;
}

// Quantiles 0.975 of Student's t for 1 to 10 degrees of freedom.
const STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/** The quantile 0.975 of Student's t; above 10 degrees of freedom by Cornish and Fisher's expansion, within 0.1 %. */
function studentQuantile(degrees: number): number {
  return STUDENT[degrees - 1] ?? 1.96 + 2.372 / degrees + 2.823 / degrees ** 2;
}

/** The mean of values, of which there is at least one. */
export function meanOf(values: readonly number[]): Mean {
  const count = values.length;
  const value = values.reduce((a, b) => a + b, 0) / count;
  if (count < 2) return { value };
  const variance = values.reduce((sum, each) => sum + (each - value) ** 2, 0) / (count - 1);
  const half = studentQuantile(count - 1) * Math.sqrt(variance / count);
  return { value, lower: value - half, upper: value + half };
}

/** Means over the last values at each place: at most `window` of them. */
export function runningMeans(values: readonly number[], window: number): number[] {
  let sum = 0;
  return values.map((value, index) => {
    sum += value - (index >= window ? (values[index - window] as number) : 0);
    return sum / Math.min(index + 1, window);
  });
}
