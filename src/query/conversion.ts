import { EngineError } from "../core/errors.ts";
import { unexpected } from "./attempt.ts";
import type { QueryBudget } from "./budgets/budget.ts";
import type { Conversion, Converted } from "./contract/engines.ts";
import { lendPaths } from "./scan/lend-files.ts";
import { inputFolder, outputFolder } from "./scan/process-folders.ts";
import type { QueryProcess } from "./scan/query-process.ts";
import { checkedData, deliver } from "./stream/result-body.ts";

/**
 * Has a process turn rows of another program into an answer. What that program has sent is read nowhere else: the
 * process is confined, and bounded in what it takes.
 */
export async function converted(
  child: QueryProcess,
  { rows, format, maxRows, saveTo, signal }: Conversion,
  { memoryBytes }: QueryBudget,
): Promise<Converted> {
  const lent = await lendPaths(inputFolder(child.folder), rows.paths);
  try {
    const paths = rows.paths.map((path) => lent.links.get(path) ?? path);
    const done = await child.ask({ kind: "convert", rows: { ...rows, paths }, format, memoryBytes, maxRows });
    if (done.kind !== "done") throw unexpected(done.kind);
    const data = checkedData(done.data, outputFolder(child.folder));
    const answer = { rows: done.rows, isTruncated: done.isTruncated, columns: done.columns };
    return { ...answer, body: await deliver(data, { saveTo, signal }) };
  } catch (error) {
    throw foreignFailure(error);
  } finally {
    await lent.release();
  }
}

/** What our own text cannot be wrong with, the values are. */
function foreignFailure(error: unknown): unknown {
  const isAboutValues = error instanceof EngineError && ["execution_error", "invalid_query"].includes(error.code);
  if (!isAboutValues) return error;
  return new EngineError("execution_error", `the query engine sent a value that cannot be taken: ${error.message}`);
}
