import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { lazyPart, usePart } from "../base/lazy-part.ts";
import type { Table } from "../base/schema.ts";
import { PartFailed } from "../components/part-failed.tsx";
import { Spinner } from "../components/spinner.tsx";
import type { EditorHandle, EditorSettings } from "./code-mirror.ts";

export type EditorProps = Omit<EditorSettings, "parent" | "text"> & {
  /** The text; one from outside that differs from what is there replaces it. */
  value: string;
  /** What a text in KQL may name, as the schema has it: one value for as long as it is the same. */
  tables?: readonly Table[] | undefined;
  /** A text in KQL holds several queries with blank lines between them, each of which runs alone. */
  isScript?: boolean;
  /** Is given the editor once it is there, for selection, cursor and focus. */
  onReady?: (editor: EditorHandle) => void;
  class?: string;
};

const part = lazyPart(() => import("./code-mirror.ts"));
const kqlPart = lazyPart(() => import("./kql/kql-support.ts"));

/**
 * A text editor with the colours of the theme. Mod-Enter runs, Escape cancels; Tab leaves it, as everywhere (indent with
 * Mod-]). All of CodeMirror is behind this one import.
 */
export function Editor(props: EditorProps): JSX.Element {
  const { value, onReady, class: ownClass, tables, isScript = false, ...given } = props;
  const isKql = given.language === "kql";
  const { part: support } = usePart(kqlPart, isKql);
  // Whoever types at once does so before that part is there.
  const isEdited = useRef(false);
  const context = useRef({ tables, isScript });
  context.current = { tables, isScript };
  const extensions = useMemo(() => {
    const of = () => context.current;
    const service = isKql && support !== undefined ? [support.kqlSupport(of, () => isEdited.current)] : [];
    return given.extensions === undefined ? service : [...service, given.extensions];
  }, [isKql, support, given.extensions]);
  const settings = { ...given, extensions };
  const { part: library, hasFailed } = usePart(part);
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorHandle | undefined>(undefined);
  const latest = useRef({ value, settings, onReady });
  latest.current = { value, settings, onReady };
  useEffect(() => {
    const { current: parent } = place;
    if (library === undefined || parent === null) return;
    const now = latest.current;
    const made = library.createEditor({
      ...now.settings,
      parent,
      text: now.value,
      onChange: (text) => {
        isEdited.current ||= latest.current.settings.language === "kql";
        latest.current.settings.onChange?.(text);
      },
      onTouched: (hasTextChanged) => latest.current.settings.onTouched?.(hasTextChanged),
      onRun: () => latest.current.settings.onRun?.(),
      onCancel: () => latest.current.settings.onCancel?.() ?? false,
    });
    editor.current = made;
    now.onReady?.(made);
    return () => {
      editor.current = undefined;
      made.destroy();
    };
  }, [library]);
  useEffect(() => editor.current?.setText(value), [value]);
  const { language, isReadOnly } = settings;
  useEffect(() => {
    editor.current?.configure({ language, extensions, isReadOnly });
  }, [language, extensions, isReadOnly]);
  useEffect(() => {
    if (isKql && editor.current !== undefined) support?.readAgain(editor.current.view);
  }, [isKql, support, tables, isScript]);
  if (hasFailed) return <PartFailed />;
  return (
    <div class={`editor${ownClass === undefined ? "" : ` ${ownClass}`}`} ref={place}>
      {library === undefined && <Spinner label="Loading the editor…" />}
    </div>
  );
}
