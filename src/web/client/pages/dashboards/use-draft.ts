import { useCallback, useEffect, useState } from "preact/hooks";
import { onForget } from "../../base/session.ts";
import { contentOf, type Content, type Dashboard } from "./document.ts";

/** Changes that are not saved, and the version that they were made on. */
export type Draft = { base: Dashboard; content: Content };

/** They stay while other pages are looked at; the browser asks before the tab is closed. */
const drafts = new Map<string, Draft>();
onForget(() => drafts.clear());

export function useDraft(dashboard: Dashboard): {
  draft: Draft | undefined;
  change: (next: (now: Content) => Content) => void;
  drop: () => void;
} {
  const { id } = dashboard;
  const [draft, setDraft] = useState(() => drafts.get(id));
  const isThere = draft !== undefined;
  useEffect(() => {
    if (!isThere) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isThere]);
  const change = useCallback(
    (next: (now: Content) => Content) => {
      const { base, content } = drafts.get(id) ?? { base: dashboard, content: contentOf(dashboard) };
      const changed = { base, content: next(content) };
      drafts.set(id, changed);
      setDraft(changed);
    },
    [id, dashboard],
  );
  const drop = useCallback(() => {
    drafts.delete(id);
    setDraft(undefined);
  }, [id]);
  return { draft, change, drop };
}
