import type { JSX } from "preact";
import { formatDuration } from "../../base/format.ts";
import { stageTimes, type QueryRecord } from "./query-record.ts";

/**
 * Where the time of a query went: a bar with a part for each stage, and the same in words. An empty line as long as that
 * is not known, so that rows which are there already stay where they are.
 */
export function StageTimes({ record }: { record: QueryRecord | undefined }): JSX.Element {
  if (record === undefined) return <div class="stages" />;
  const times = stageTimes(record.stages_ms);
  return (
    <div class="stages">
      <div class="stages-bar" aria-hidden="true">
        {times.map(({ id, ms }) => (
          <span key={id} class={`stage-part stage-${id}`} style={{ flexGrow: String(ms) }} />
        ))}
      </div>
      <ul class="stages-list" aria-label="Time by stage">
        {times.map(({ id, name, ms }) => (
          <li key={id}>
            <span class={`stage-mark stage-${id}`} aria-hidden="true" />
            {name} {ms < 1 ? "< 1 ms" : formatDuration(ms)}
          </li>
        ))}
      </ul>
    </div>
  );
}
