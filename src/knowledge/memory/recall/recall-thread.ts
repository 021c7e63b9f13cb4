import "../../../core/reports.ts";
import "../../../core/warnings.ts";
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../../core/clock.ts";
import { EngineError, messageOf, toErrorRecord } from "../../../core/errors.ts";
import { systemRandom } from "../../../core/random.ts";
import { Indexes } from "./indexes.ts";
import type { RecallReply, RecallRequest, RecallThreadData } from "./recall-protocol.ts";
import { openRecordSource } from "./record-source.ts";

/** The thread that keeps the indexes of memories and answers from them: one in a process. */
const port = parentPort;
if (port === null) throw new Error("the thread of recall was started as a program");
const { source, options } = workerData as RecallThreadData;
const records = await openRecordSource(source, { clock: systemClock, random: systemRandom });
const indexes = new Indexes({ records, clock: systemClock, options });

port.on("message", (request: RecallRequest) => {
  void answer(request).then((reply) => port.postMessage(reply));
});

async function answer({ id, databaseId, asked }: RecallRequest): Promise<RecallReply> {
  try {
    return { id, kind: "answer", json: JSON.stringify(await indexes.recall(databaseId, asked)) };
  } catch (error) {
    if (error instanceof EngineError) return { id, kind: "refused", error: toErrorRecord(error) };
    return { id, kind: "failed", message: messageOf(error), stack: error instanceof Error ? error.stack : undefined };
  }
}
