import { useCallback, useEffect, useState } from "preact/hooks";
import { onForget } from "../../base/session.ts";
import { contentOf, isSame, type Content, type Dashboard } from "./document.ts";

/** Changes that are not saved, and the version that they were made on. */
export type Draft = { base: Dashboard; content: Content };

/** They stay while other pages are looked at; the browser asks before the tab is closed. */
const drafts = new Map<string, Draft>();
onForget(() => drafts.clear());

export function useDraft(dashboard: Dashboard): {
  draft: Draft | undefined;
  hasChanges: boolean;
  change: (next: (now: Content) => Content) => void;
  drop: () => void;
} {
  const { id } = dashboard;
  const [draft, setDraft] = useState(() => drafts.get(id));
  const hasChanges = draft !== undefined && !isSame(draft.content, contentOf(draft.base));
  useEffect(() => {
    if (!hasChanges) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [hasChanges]);
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
  return { draft, hasChanges, change, drop };
}
