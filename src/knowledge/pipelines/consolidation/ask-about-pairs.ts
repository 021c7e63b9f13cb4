import { z } from "zod";
import type { Clock } from "../../../core/clock.ts";
import type { Random } from "../../../core/random.ts";
import type { OpenedEngine } from "../../agent/engines/engine.ts";
import { smallTask } from "../../agent/engines/small-task.ts";
import { cutToBytes } from "../../agent/sessions/text.ts";
import { mayBeSame } from "../../filesync/duplicates.ts";
import { embeddedText } from "../../memory/embed/vector-text.ts";
import type { NodeRecord } from "../../memory/model.ts";
import type { Verdict } from "../../memory/verdicts.ts";
import { PIPELINE_LIMITS } from "../limits.ts";
import { jsonIn } from "../../../core/json-text.ts";

/** Two memories that are alike. */
export type AlikeNodes = { one: NodeRecord; other: NodeRecord };

const TASK =
  "Below are pairs of entries of a memory. Say of each pair whether its two entries, a and b, say the same: `same` where " +
  "whoever has read one learns nothing from the other; `different` where they are about different things, disagree, or one " +
  "says more than the other; `unsure` where you cannot tell. Answer with JSON lines and nothing else, one for each pair: " +
  '{"pair": "the name of the pair", "verdict": "same", "different" or "unsure"}.';

const line = z.strictObject({ pair: z.string(), verdict: z.enum(["same", "different", "unsure"]) });

/**
 * Asks a language model once about several pairs of one realm. Resolves to what it said of each, in their order: undefined
 * where its answer has nothing usable on a pair. Rejects with the provider's words, and after ten seconds.
 *
 * What a memory says is data: it stands between marks that no memory can know, and the names of pairs are drawn for each
 * question, so that no memory can hold an answer to be repeated. The model decides nothing but the verdict, and may not
 * say `same` where numbers differ, or where it was not shown all of both texts.
 */
export async function askAboutPairs(
  engine: OpenedEngine,
  pairs: readonly AlikeNodes[],
  { signal, ...deps }: { clock: Clock; random: Random; signal: AbortSignal },
): Promise<(Verdict | undefined)[]> {
  const names = pairs.map(() => nameOf(deps.random));
  const text = pairs.map((pair, i) => `pair ${names[i]}: ${JSON.stringify(shown(pair))}`).join("\n");
  const said = await smallTask(
    engine,
    {
      task: TASK,
      origin: "the memory",
      text,
      maxOutputTokens: PIPELINE_LIMITS.judgedTokens,
      timeoutMs: PIPELINE_LIMITS.judgedMs,
      signal,
    },
    deps,
  );
  const verdicts = verdictsIn(said);
  return pairs.map((pair, i) => {
    const verdict = verdicts.get(names[i] ?? "");
    if (verdict === "unsure") return "undecided";
    return verdict === "same" && !mayBeSaidSame(pair) ? "undecided" : verdict;
  });
}

function nameOf(random: Random): string {
  return Buffer.from(random.fill(new Uint8Array(4))).toString("hex");
}

function shown({ one, other }: AlikeNodes): { a: string; b: string } {
  return { a: excerptOf(one), b: excerptOf(other) };
}

function excerptOf(node: NodeRecord): string {
  return cutToBytes(embeddedText(node), PIPELINE_LIMITS.judgedTextBytes);
}

function mayBeSaidSame({ one, other }: AlikeNodes): boolean {
  return mayBeSame(one, other) && [one, other].every((node) => excerptOf(node) === embeddedText(node));
}

type Said = z.output<typeof line>["verdict"];

/** By the name of the pair; whatever is no verdict is left out, and so is a pair of which it says two things. */
function verdictsIn(said: string): Map<string, Said> {
  const found = new Map<string, Said>();
  const torn = new Set<string>();
  for (const [text] of said.matchAll(/\{[^{}]*\}/gu)) {
    const read = line.safeParse(jsonIn(text));
    if (!read.success) continue;
    const { pair, verdict } = read.data;
    if ((found.get(pair) ?? verdict) !== verdict) torn.add(pair);
    found.set(pair, verdict);
  }
  for (const pair of torn) found.delete(pair);
  return found;
}
