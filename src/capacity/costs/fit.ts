/**
 * Coefficients from observations: least squares of relative errors in which no coefficient is below zero, since nothing
 * gives CPU back. The method is Lawson and Hanson's (Solving Least Squares Problems, 1974, chapter 23), by coordinate
 * descent: the problems have four unknowns at most.
 */

export type FitPoint = {
  /** What was counted, by the coefficient that it goes with. */
  terms: Readonly<Record<string, number>>;
  /** What was measured; points of zero or less say nothing and are left out. */
  value: number;
};

export type Fit = {
  /** Per unit of each term. */
  coefficients: Readonly<Record<string, number>>;
  /** Share by which a measured value passed what the fit says, exceeded by one in ten. Never below `LEAST_ERROR`. */
  errorP90: number;
  points: number;
};

/** What two runs of one load differ by on a quiet machine: a fit through few points is no better. */
const LEAST_ERROR = 0.05;
const SWEEPS = 20_000;
const CLOSE_ENOUGH = 1e-12;

/** Throws when there is no point to fit. */
export function fit(points: readonly FitPoint[], names: readonly string[]): Fit {
  const used = points.filter(({ value }) => value > 0);
  if (used.length === 0) throw new Error("nothing was measured");
  const scales = names.map((name) => Math.max(...used.map(({ terms }) => terms[name] ?? 0)));
  // Each column by its largest value, each row by what was measured: all errors are shares.
  const rows = used.map(({ terms, value }) =>
    names.map((name, j) => (scales[j] === 0 ? 0 : (terms[name] ?? 0) / (scales[j] ?? 1) / value)),
  );
  const solved = descend(rows);
  const coefficients = Object.fromEntries(
    names.map((name, j) => [name, scales[j] === 0 ? 0 : (solved[j] ?? 0) / (scales[j] ?? 1)]),
  );
  const errors = used
    .map(({ terms, value }) => Math.abs(value / valueOf(coefficients, terms) - 1))
    .sort((a, b) => a - b);
  const at = errors[Math.max(0, Math.ceil(errors.length * 0.9) - 1)] ?? 0;
  return { coefficients, errorP90: Math.max(LEAST_ERROR, at), points: used.length };
}

export function valueOf(
  coefficients: Readonly<Record<string, number>>,
  terms: Readonly<Record<string, number>>,
): number {
  return Object.entries(coefficients).reduce((sum, [name, each]) => sum + each * (terms[name] ?? 0), 0);
}

/** The x ≥ 0 for which all rows times x come nearest to 1. */
function descend(rows: readonly (readonly number[])[]): number[] {
  const width = rows[0]?.length ?? 0;
  const x = Array.from({ length: width }, () => 0);
  const products = (j: number, k: number) => rows.reduce((sum, row) => sum + (row[j] ?? 0) * (row[k] ?? 0), 0);
  const gram = x.map((_, j) => x.map((__, k) => products(j, k)));
  const sums = x.map((_, j) => rows.reduce((sum, row) => sum + (row[j] ?? 0), 0));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    let moved = 0;
    for (let j = 0; j < width; j++) {
      const own = gram[j]?.[j] ?? 0;
      if (own === 0) continue;
      const rest = x.reduce((sum, each, k) => (k === j ? sum : sum + each * (gram[j]?.[k] ?? 0)), 0);
      const next = Math.max(0, ((sums[j] ?? 0) - rest) / own);
      moved = Math.max(moved, Math.abs(next - (x[j] ?? 0)));
      x[j] = next;
    }
    if (moved < CLOSE_ENOUGH) break;
  }
  return x;
}
