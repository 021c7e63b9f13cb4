import "../../core/warnings.ts";
import { messageOf } from "../../core/errors.ts";
import { KqlRefused, TOO_DEEP } from "../kql/contract.ts";
import { namesOf, translate } from "../kql/translate.ts";
import { enterFolder, liveWithServer } from "../scan/confined-child.ts";
import type { TranslatorAnswer, TranslatorMessage, TranslatorReply } from "./protocol.ts";

/**
 * The translator process (see `translator.ts`): one text at a time, of which nothing is kept. It opens no file once it
 * is ready, and runs no SQL.
 */
function answer(message: TranslatorMessage): TranslatorAnswer {
  try {
    switch (message.kind) {
      case "names":
        return { kind: "names", names: namesOf(message.text) };
      case "translate":
        return { kind: "translation", translation: translate(message.request) };
    }
  } catch (error) {
    if (error instanceof KqlRefused) return { kind: "refused", failure: error.failure };
    if (isStackOverflow(error)) return { kind: "refused", failure: { code: "invalid_query", message: TOO_DEEP } };
    return { kind: "failed", message: error instanceof Error ? (error.stack ?? error.message) : messageOf(error) };
  }
}

/** The library may have wrapped it in an exception of its own. */
function isStackOverflow(error: unknown): boolean {
  return error instanceof RangeError || messageOf(error).includes("Maximum call stack size exceeded");
}

function send(answered: { kind: "ready" } | TranslatorAnswer): void {
  process.send?.({ ...answered, rssBytes: process.memoryUsage.rss() } satisfies TranslatorReply);
}

liveWithServer();
enterFolder();
// The first analysis builds the grammar, unless the start-up snapshot has it.
translate({ text: "print x = 1", tables: [], tableNames: [], nowNs: 0n, keys: [] });
process.on("message", (message) => send(answer(message as TranslatorMessage)));
send({ kind: "ready" });
