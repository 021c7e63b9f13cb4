import { tableFromIPC } from "@uwdata/flechette";
import { createEventTarget, HighTable } from "hightable";
import "hightable/src/HighTable.css";
import { createElement } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { readArrowMessages } from "../../../src/web/client/base/arrow-messages.ts";

/**
 * The peer of `web/rows`: hightable under React shows the same answer of the same server, read with the same library. Rows
 * are shown as they come, from the buffers in which they came, by a data frame that grows (`numrowschange`) and has every
 * cell at once, so that nothing is fetched when the table scrolls.
 */
globalThis.peer = { run };

const OPTIONS = { useDate: true, useBigInt: true };
/** As often as the query page draws. */
const TOLD_EVERY_MS = 60;

async function run(sql) {
  const answer = await fetch("/v1/query", {
    method: "POST",
    headers: { "Content-Type": "application/sql", Accept: "application/vnd.apache.arrow.stream", "X-Engine-Web": "1" },
    body: sql,
    cache: "no-store",
  });
  if (!answer.ok) throw new Error(await answer.text());
  const frame = new GrowingFrame();
  let toldMs = Number.NEGATIVE_INFINITY;
  let schema;
  for await (const { kind, bytes } of readArrowMessages(answer.body)) {
    if (kind === "schema") schema = bytes;
    if (kind !== "batch") continue;
    frame.add(tableFromIPC([schema, bytes], OPTIONS));
    if (toldMs === Number.NEGATIVE_INFINITY) show(frame);
    else if (performance.now() - toldMs >= TOLD_EVERY_MS) frame.tell();
    else continue;
    toldMs = performance.now();
  }
  frame.tell();
}

/** At once, so that the table listens before the next rows come. */
function show(data) {
  flushSync(() => {
    createRoot(document.querySelector("#rows")).render(createElement(HighTable, { data, onError: fail }));
  });
}

function fail(error) {
  document.title = `failed: ${error}`;
}

/** What hightable calls a data frame, of batches that are added. */
class GrowingFrame {
  columnDescriptors = [];
  numRows = 0;
  eventTarget = createEventTarget();
  #batches = [];

  add(table) {
    if (this.#batches.length === 0) this.columnDescriptors = table.schema.fields.map(({ name }) => ({ name }));
    const columns = new Map(this.columnDescriptors.map(({ name }) => [name, table.getChild(name)]));
    this.#batches.push({ start: this.numRows, columns });
    this.numRows += table.numRows;
  }

  tell() {
    this.eventTarget.dispatchEvent(new CustomEvent("numrowschange"));
  }

  getRowNumber({ row }) {
    return { value: row };
  }

  getCell({ row, column }) {
    let [low, high] = [0, this.#batches.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#batches[middle].start <= row) low = middle;
      else high = middle - 1;
    }
    const { start, columns } = this.#batches[low];
    return { value: columns.get(column).at(row - start) };
  }
}
