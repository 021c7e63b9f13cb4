import type { JSX } from "preact";
import { formatBytes, formatCount, plural } from "../../base/format.ts";
import { ErrorBox } from "../../components/error-box.tsx";
import type { CheckedTable, Problem } from "./query-check.ts";
import type { Checking } from "./use-check.ts";

/** Beside Run: what the query would read. Of a text that is wrong nothing is said, as it would not run. */
export function Estimate({ checking: { outcome, isCurrent } }: { checking: Checking }): JSX.Element {
  const isKnown = outcome?.kind === "checked" && outcome.problems.length === 0;
  return (
    <span class={isCurrent ? "estimate" : "estimate estimate-old"}>{isKnown && estimateText(outcome.tables)}</span>
  );
}

/** `Would read 12 of 340 extents, up to 1.20 GB`: of an extent no more than the columns in question are read. */
export function estimateText(tables: readonly CheckedTable[]): string {
  const sum = (figure: "extents" | "extents_total" | "bytes"): number =>
    tables.reduce((total, table) => total + table[figure], 0);
  const [extents, total, bytes] = [sum("extents"), sum("extents_total"), sum("bytes")];
  if (total === 0) return "Would read no extents";
  const of = tables.length > 1 ? ` of ${formatCount(tables.length)} tables` : "";
  const read = `${formatCount(extents)} of ${plural(total, "extent")}${of}`;
  if (extents === 0) return `Would read ${read}`;
  // Such as a count of all rows, which is known without them.
  return bytes === 0 ? `Would read the metadata of ${read} only` : `Would read ${read}, up to ${formatBytes(bytes)}`;
}

type CheckProblemsProps = { checking: Checking; onShow: (problem: Problem) => void };

/** Below the editor: what is wrong with the query, by its place, or why nobody can say. */
export function CheckProblems({ checking, onShow }: CheckProblemsProps): JSX.Element {
  const { outcome, retry } = checking;
  const problems = outcome?.kind === "checked" ? outcome.problems : [];
  return (
    <>
      <div class="check-problems" role="status" aria-label="Problems of the query">
        {problems.map((problem) => (
          <p key={`${problem.from} ${problem.message}`}>
            <button type="button" class="check-place" onClick={() => onShow(problem)}>
              Line {problem.line}, column {problem.column}
            </button>
            : {problem.message}
          </p>
        ))}
      </div>
      {outcome?.kind === "failed" && (
        <ErrorBox title="The query could not be checked." error={outcome.error} onRetry={retry} />
      )}
    </>
  );
}
