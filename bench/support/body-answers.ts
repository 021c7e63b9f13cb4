import { readFileSync } from "node:fs";
import { expectedAnswers, type Answers } from "./answers.ts";
import { cutByRows, cutBySize } from "./bodies.ts";
import type { DataFile } from "./data-file.ts";
import { addAnswers } from "./ingest-run.ts";
import type { Cut } from "./load-plan.ts";

/**
 * Cuts the data as the generator does; the function answers what bodies of it hold that were accepted so often (by
 * body).
 */
export function answersByBody({ path, checks }: DataFile, cut: Cut): (acceptedByBody: readonly number[]) => Answers {
  const file = readFileSync(path);
  const bodies = "rows" in cut ? cutByRows(file, cut.rows) : cutBySize(file, cut.sizeBytes);
  const answers = bodies.map((ndjson) => expectedAnswers({ ndjson, checks }));
  return (acceptedByBody) => {
    const total: Answers = { rows: 0, sum: 0, hash: 0 };
    answers.forEach((each, body) => addAnswers(total, each, acceptedByBody[body] ?? 0));
    return total;
  };
}
