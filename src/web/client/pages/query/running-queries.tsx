import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { announce } from "../../base/announce.ts";
import { requestJson, request } from "../../base/api.ts";
import { formatBytes, formatDuration, plural } from "../../base/format.ts";
import { queryClient } from "../../base/query-client.ts";
import { useMutation, useQuery } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Progress, Spinner } from "../../components/spinner.tsx";
import { progressOf, type QueryRecord } from "./query-record.ts";

type Listed = { queries: QueryRecord[]; silent: { id: string; name: string; reason: string }[] };

const KEY = ["running-queries"];
const EVERY_MS = 2_000;
const SHOWN_CHARS = 300;

/** Queries that run on any node, as far as the caller may see them; and those are the ones that the caller may end. */
export function RunningQueries({ search }: { search: string }): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  const found = useQuery<Listed>({
    key: KEY,
    read: (signal) => requestJson("/v1/queries", { query: { state: "running" }, signal }),
    staleMs: 0,
    everyMs: EVERY_MS,
  });
  const end = useMutation(async ({ id }: QueryRecord) => {
    await request(`/v1/queries/${id}`, { method: "DELETE" });
    announce("The query was ended.");
    await queryClient.invalidateQueries({ queryKey: KEY });
    // The button that had it is gone with its query.
    list.current?.focus();
  });
  const { data, error, refetch } = found;
  if (data === undefined) {
    if (error === null) return <Spinner label="Asking the nodes…" />;
    return <ErrorBox title="The list could not be read." error={error} onRetry={() => void refetch()} />;
  }
  const wanted = search.toLowerCase();
  const shown = data.queries.filter(({ text, subject }) => `${subject}\n${text}`.toLowerCase().includes(wanted));
  return (
    <div class="running" ref={list} tabIndex={-1} role="group" aria-label="Running queries">
      {error !== null && <ErrorBox title="The list is not up to date." error={error} onRetry={() => void refetch()} />}
      {end.error !== null && <ErrorBox title="The query was not ended." error={end.error} />}
      {data.silent.length > 0 && <Silent nodes={data.silent} />}
      {shown.length === 0 ? (
        <EmptyState icon="query" title={search === "" ? "Nothing is running" : "Nothing found"}>
          <p>{search === "" ? "The list is read again every two seconds." : "No running query contains this text."}</p>
        </EmptyState>
      ) : (
        <ul class="kept">
          {shown.map((query) => (
            <RunningQuery
              key={`${query.node.id} ${query.subject} ${query.id}`}
              query={query}
              isEnding={end.isPending && end.variables.id === query.id}
              onEnd={() => void end.run(query)}
            />
          ))}
        </ul>
      )}
    </div>
  );
}

type RunningQueryProps = { query: QueryRecord; isEnding: boolean; onEnd: () => void };

function RunningQuery({ query, isEnding, onEnd }: RunningQueryProps): JSX.Element {
  const { subject, is_own: isOwn, database, text, node } = query;
  const progress = progressOf(query);
  return (
    <li>
      <div class="running-query">
        <code>{text.slice(0, SHOWN_CHARS)}</code>
        <p>
          <strong>{isOwn ? `${subject} (you)` : subject}</strong> · {progress.text} · {formatDuration(query.elapsed_ms)}
        </p>
        {progress.value !== undefined && <Progress label={progress.text} value={progress.value} />}
        <small>{[...costsOf(query), database, `on ${node.name}`].join(" · ")}</small>
      </div>
      <Button
        look="danger"
        icon="stop"
        isBusy={isEnding}
        label={isOwn ? "End your query" : `End the query of ${subject}`}
        onClick={onEnd}
      >
        End
      </Button>
    </li>
  );
}

/** What a query takes; nothing of what the node has not measured yet. */
function costsOf(query: QueryRecord): string[] {
  const { bytes_planned: planned, bytes_ready: ready, bytes_read: read, memory_bytes: memory } = query;
  const { spill_bytes: spilled } = query;
  return [
    ...(planned === null || planned === 0 ? [] : [`${formatBytes(ready ?? 0)} of ${formatBytes(planned)} on the node`]),
    ...(read === null || read === 0 ? [] : [`${formatBytes(read)} from the object store`]),
    ...(memory === null ? [] : [`${formatBytes(memory)} of memory`]),
    ...(spilled === null || spilled === 0 ? [] : [`${formatBytes(spilled)} spilled`]),
  ];
}

function Silent({ nodes }: { nodes: Listed["silent"] }): JSX.Element {
  return (
    <p class="running-silent" role="status">
      {plural(nodes.length, "node")} did not answer, so their queries are missing here:{" "}
      {nodes.map(({ name, reason }) => `${name} (${reason})`).join(", ")}.
    </p>
  );
}
