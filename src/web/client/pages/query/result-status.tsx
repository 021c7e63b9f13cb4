import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { clock } from "../../base/clock.ts";
import { formatBytes, formatCount, formatDuration, plural } from "../../base/format.ts";
import { Progress, Spinner } from "../../components/spinner.tsx";
import { progressOf, type RecordOfRun } from "./query-record.ts";
import { StageTimes } from "./stage-times.tsx";
import type { ResultOfRun } from "./use-result.ts";

type ResultStatusProps = { current: ResultOfRun; followed: RecordOfRun; isSorting: boolean };

/** How far a run is, as far as the server knows; after its end what came, and where the time went. */
export function ResultStatus({ current: { result }, followed, isSorting }: ResultStatusProps): JSX.Element {
  const { state, head, rows, received, bytes, isFiltered, isRunning } = result;
  const { record, error } = followed;
  const [, draw] = useState(0);
  // While nothing has come, the time that has passed is what there is to show.
  useEffect(() => (isRunning ? clock.every(100, () => draw((count) => count + 1)) : undefined), [isRunning]);
  const passedMs = result.elapsedMs ?? clock.monotonicMs() - result.startedMs;
  const progress = state === "waiting" && record?.state === "running" ? progressOf(record) : undefined;
  const ended = !isRunning && record?.state === "ended" ? record : undefined;
  const hasRows = state === "receiving" || state === "done";
  const facts = [
    state === "waiting" ? (progress?.text ?? "Running") : plural(received, "row"),
    ...(isFiltered ? [`${formatCount(rows)} found`] : []),
    ...(bytes > 0 ? [formatBytes(bytes)] : []),
    formatDuration(passedMs),
    ...(state === "stopped" ? ["stopped"] : []),
    ...(isSorting ? ["sorting…"] : []),
  ];
  return (
    <div class="result-status">
      <p class="result-facts">
        {isRunning && <Spinner />}
        <span>{facts.join(" · ")}</span>
        {head?.isTruncated === true && (
          <span class="result-more">There are more rows: the limit is {formatCount(received)}.</span>
        )}
      </p>
      {progress?.value !== undefined && <Progress label="Progress of the query" value={progress.value} />}
      {(hasRows || ended !== undefined) && <StageTimes record={ended} />}
      {error !== null && (
        <p>
          {isRunning ? "Its progress is not known" : "Its times by stage are not known"}: {error.message}
        </p>
      )}
    </div>
  );
}
