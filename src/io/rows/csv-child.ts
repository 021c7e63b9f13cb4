import "../../core/warnings.ts";
import { messageOf } from "../../core/errors.ts";
import { encodeBatch, takeTask } from "./csv-protocol.ts";
import { csvRows } from "./csv-rows.ts";
import type { ToldFailure } from "./reader-process.ts";
import { RowCutter } from "./row-cutter.ts";
import { UnreadableRows } from "./unreadable-rows.ts";
import { writeOut } from "./write-out.ts";

/** See `csv-reader.ts`: CSV on standard input becomes batches of NDJSON on standard output. */
async function writeBatches(): Promise<void> {
  const { task, rest } = await takeTask(process.stdin);
  const origin = { shown: task.shown, unit: "line" } as const;
  const cutter = new RowCutter(origin, task.batchBytes);
  for await (const rows of csvRows(rest, { origin, delimiter: ",", columns: task.columns })) {
    cutter.push(rows);
    for (let batch = cutter.takeFull(); batch !== undefined; batch = cutter.takeFull()) writeOut(encodeBatch(batch));
  }
  const last = cutter.takeRest();
  if (last !== undefined) writeOut(encodeBatch(last));
}

try {
  await writeBatches();
} catch (error) {
  const line = error instanceof UnreadableRows ? error.line : undefined;
  const told: ToldFailure = { message: messageOf(error), ...(line === undefined ? {} : { line }) };
  process.stderr.write(error instanceof UnreadableRows ? JSON.stringify(told) : messageOf(error));
  process.exitCode = 1;
}
process.stdin.destroy();
