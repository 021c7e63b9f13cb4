import { useCallback, useEffect, useReducer, useState } from "preact/hooks";
import { dropDraft, keepDraft, readDraft } from "../../base/drafts.ts";
import { onForget } from "../../base/session.ts";
import { contentOf, isSame, type Content, type Dashboard } from "./document.ts";

/** Changes that are not saved, and the version that they were made on. */
export type Draft = { base: Dashboard; content: Content };

/** By the ids of dashboards; undefined for one that has no draft. The browser's database has them for the next page. */
let drafts = new Map<string, Draft | undefined>();
onForget(() => {
  drafts = new Map();
});

/** Another number than a draft has that an earlier release kept: those are not read. */
const FORMAT = 1;
const keptKey = (id: string): string => `dashboard:${id}`;

function write(id: string, draft: Draft): void {
  drafts.set(id, draft);
  keepDraft(keptKey(id), { format: FORMAT, ...draft });
}

/** Forgets the changes to a dashboard: they are saved, given up, or it is deleted. */
export function dropChanges(id: string): void {
  drafts.set(id, undefined);
  void dropDraft(keptKey(id));
}

/** Whether it is known if there are changes that an earlier page has left; `useDraft` has them then. */
export function useIsDraftRead(id: string): boolean {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const into = drafts;
    if (into.has(id)) return;
    void readDraft(keptKey(id)).then((kept) => {
      // Those that were forgotten meanwhile are somebody else's.
      if (into !== drafts) return;
      if (!into.has(id)) into.set(id, isKept(kept) ? { base: kept.base, content: kept.content } : undefined);
      draw(undefined);
    });
  }, [id]);
  return drafts.has(id);
}

function isKept(value: unknown): value is Draft & { format: number } {
  const { format, base, content } = (value ?? {}) as Partial<Draft & { format: number }>;
  return format === FORMAT && base !== undefined && content !== undefined;
}

/** The draft, where it still has something to save: a save whose answer was lost may have arrived. */
function takenBack(dashboard: Dashboard): Draft | undefined {
  const draft = drafts.get(dashboard.id);
  if (draft === undefined) return undefined;
  const isDone = [draft.base, dashboard].some((one) => isSame(draft.content, contentOf(one)));
  if (isDone) dropChanges(dashboard.id);
  return isDone ? undefined : draft;
}

export type Changes = {
  draft: Draft | undefined;
  hasChanges: boolean;
  change: (next: (now: Content) => Content) => void;
  drop: () => void;
  /** The content is saved. Returns whether that was all: what was changed meanwhile stays, on the new version. */
  settle: (saved: Dashboard, content: Content) => boolean;
};

/** Changes to a dashboard. They outlast the page: `useIsDraftRead` says when an earlier one's are known. */
export function useDraft(dashboard: Dashboard): Changes {
  const { id } = dashboard;
  const [draft, setDraft] = useState(() => takenBack(dashboard));
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
      write(id, changed);
      setDraft(changed);
    },
    [id, dashboard],
  );
  const drop = useCallback(() => {
    dropChanges(id);
    setDraft(undefined);
  }, [id]);
  const settle = useCallback(
    (saved: Dashboard, content: Content): boolean => {
      const now = drafts.get(id);
      if (now === undefined || isSame(now.content, content)) {
        drop();
        return true;
      }
      const rest = { base: saved, content: now.content };
      write(id, rest);
      setDraft(rest);
      return false;
    },
    [id, drop],
  );
  return { draft, hasChanges, change, drop, settle };
}
