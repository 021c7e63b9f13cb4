import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { requestJson } from "../../base/api.ts";
import { formatCount, formatDuration } from "../../base/format.ts";
import { useMutation, useQuery } from "../../base/use-query.ts";
import { queryClient } from "../../base/query-client.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Field } from "../../components/field.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { formatWhen } from "../../time/time-range.ts";
import { RunningQueries } from "./running-queries.tsx";

export type KeptText = { text: string; language: "sql" | "kql"; database: string };
type HistoryEntry = KeptText & {
  id: string;
  ran_at: string;
  outcome: string;
  rows: number | null;
  elapsed_ms: number | null;
};
type SavedQuery = KeptText & {
  id: string;
  name: string;
  description: string;
  shared: boolean;
  is_own: boolean;
  owned_by: string;
};

export type KeptList = "history" | "saved" | "running";

type KeptQueriesProps = {
  /** The list that is shown first. */
  first: KeptList;
  onChoose: (kept: KeptText, title: string) => void;
  onClose: () => void;
};

/** What was run before, what has been saved, and what runs now: choosing one of the first two puts it into a tab. */
export function KeptQueries({ first, onChoose, onClose }: KeptQueriesProps): JSX.Element {
  const [shown, setShown] = useState(first);
  const [search, setSearch] = useState("");
  return (
    <Dialog title="Queries" width="wide" onClose={onClose}>
      <Field label="Find" type="search" placeholder="A part of the text" value={search} onInput={setSearch} />
      <Tabs
        label="Which queries"
        tabs={[
          { id: "history", title: "History" },
          { id: "saved", title: "Saved" },
          { id: "running", title: "Running" },
        ]}
        selected={shown}
        onSelect={setShown}
      >
        {shown === "history" && <History search={search} onChoose={onChoose} />}
        {shown === "saved" && <Saved search={search} onChoose={onChoose} />}
        {shown === "running" && <RunningQueries search={search} />}
      </Tabs>
    </Dialog>
  );
}

type ListProps = { search: string; onChoose: KeptQueriesProps["onChoose"] };

const wanted = (search: string) => ({ limit: 100, search: search === "" ? undefined : search });

function History({ search, onChoose }: ListProps): JSX.Element {
  const found = useQuery({
    key: ["query-history", search],
    read: async (signal) =>
      (await requestJson<{ queries: HistoryEntry[] }>("/v1/query-history", { query: wanted(search), signal })).queries,
  });
  const forget = useMutation(async () => {
    await requestJson("/v1/query-history", { method: "DELETE" });
    await queryClient.invalidateQueries({ queryKey: ["query-history"] });
  });
  if (found.error !== null) return <ErrorBox title="The history could not be read." error={found.error} />;
  if (found.data === undefined) return <Spinner label="Reading the history…" />;
  if (found.data.length === 0)
    return <Nothing search={search} what="Queries that you run here are kept for 30 days." />;
  return (
    <>
      <ul class="kept">
        {found.data.map((entry) => (
          <li key={entry.id}>
            <button type="button" class="kept-query" onClick={() => onChoose(entry, "")}>
              <code>{entry.text.slice(0, 300)}</code>
              <small>
                {formatWhen(entry.ran_at)} · {entry.database} ·{" "}
                {entry.outcome === "ok" ? `${formatCount(entry.rows ?? 0)} rows` : entry.outcome}
                {entry.elapsed_ms !== null && ` · ${formatDuration(entry.elapsed_ms)}`}
              </small>
            </button>
          </li>
        ))}
      </ul>
      <Button look="quiet" icon="trash" isBusy={forget.isPending} onClick={() => void forget.run(undefined)}>
        Forget all
      </Button>
    </>
  );
}

function Saved({ search, onChoose }: ListProps): JSX.Element {
  const found = useQuery({
    key: ["saved-queries", search],
    read: async (signal) =>
      (await requestJson<{ saved_queries: SavedQuery[] }>("/v1/saved-queries", { query: wanted(search), signal }))
        .saved_queries,
  });
  const remove = useMutation(async (id: string) => {
    await requestJson(`/v1/saved-queries/${id}`, { method: "DELETE" });
    await queryClient.invalidateQueries({ queryKey: ["saved-queries"] });
  });
  if (found.error !== null) return <ErrorBox title="The saved queries could not be read." error={found.error} />;
  if (found.data === undefined) return <Spinner label="Reading what is saved…" />;
  if (found.data.length === 0) return <Nothing search={search} what="Save a query with the button beside Run." />;
  return (
    <>
      {remove.error !== null && <ErrorBox title="It was not deleted." error={remove.error} />}
      <ul class="kept">
        {found.data.map((saved) => (
          <li key={saved.id}>
            <button type="button" class="kept-query" onClick={() => onChoose(saved, saved.name)}>
              <strong>{saved.name}</strong>
              <code>{saved.text.slice(0, 300)}</code>
              <small>
                {saved.database}
                {saved.is_own ? (saved.shared ? " · shared" : "") : ` · shared by ${saved.owned_by}`}
              </small>
            </button>
            {saved.is_own && (
              <Button
                look="quiet"
                icon="trash"
                label={`Delete ${saved.name}`}
                onClick={() => void remove.run(saved.id)}
              />
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function Nothing({ search, what }: { search: string; what: string }): JSX.Element {
  return (
    <EmptyState icon="book" title={search === "" ? "Nothing yet" : "Nothing found"}>
      <p>{search === "" ? what : "No query contains this text."}</p>
    </EmptyState>
  );
}
