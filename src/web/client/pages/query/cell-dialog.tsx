import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { formatBytes } from "../../base/format.ts";
import { Button } from "../../components/button.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { Tabs } from "../../components/tabs.tsx";
import type { RunningResult } from "../../results/running-result.ts";
import { parseExactly } from "../../base/exact-number.ts";
import { JsonTree } from "../../components/json-tree.tsx";

/** Of a long text at once: more would take seconds to lay out. */
const SHOWN_CHARS = 100_000;
/** A larger one is no tree that anybody reads. */
const TREE_CHARS = 5_000_000;

type CellDialogProps = { result: RunningResult; cell: { row: number; column: number }; onClose: () => void };

/** One value, whole; JSON as a tree. And the row that it is of. */
export function CellDialog({ result, cell, onClose }: CellDialogProps): JSX.Element {
  const [value, setValue] = useState<{ text: string | null; row: string } | undefined>();
  const [shown, setShown] = useState<"value" | "row">("value");
  const column = result.columns[cell.column];
  useEffect(() => {
    let isGone = false;
    void Promise.all([result.cell(cell.row, cell.column), result.rowJson(cell.row)]).then(([{ text }, row]) => {
      if (!isGone) setValue({ text, row });
    });
    return () => void (isGone = true);
  }, [result, cell]);
  return (
    <Dialog title={`${column?.name ?? ""}, row ${cell.row + 1}`} width="wide" onClose={onClose}>
      {value === undefined ? (
        <Spinner label="Reading the value…" />
      ) : (
        <Tabs
          label="What is shown"
          tabs={[
            { id: "value", title: "Value" },
            { id: "row", title: "Row" },
          ]}
          selected={shown}
          onSelect={setShown}
        >
          <Value text={shown === "value" ? value.text : value.row} key={shown} />
        </Tabs>
      )}
    </Dialog>
  );
}

function Value({ text }: { text: string | null }): JSX.Element {
  const [length, setLength] = useState(SHOWN_CHARS);
  if (text === null) return <p class="cell-null">NULL</p>;
  const parsed = treeOf(text);
  return (
    <div class="cell-value">
      <p class="cell-facts">
        {formatBytes(new Blob([text]).size)}
        <CopyButton text={text} label="Copy the value" />
      </p>
      {parsed !== undefined ? (
        <JsonTree value={parsed.value} />
      ) : (
        <>
          <pre class="cell-text">{text.slice(0, length)}</pre>
          {text.length > length && (
            <Button onClick={() => setLength((now) => now + 10 * SHOWN_CHARS)}>Show more</Button>
          )}
        </>
      )}
    </div>
  );
}

/** Only objects and arrays are trees. */
function treeOf(text: string): { value: unknown } | undefined {
  if (!/^\s*[[{]/.test(text) || text.length > TREE_CHARS) return undefined;
  try {
    return { value: parseExactly(text) };
  } catch {
    return undefined;
  }
}
