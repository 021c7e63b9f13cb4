import { z } from "zod";
import { topicId } from "../../memory/ids.ts";
import { DEFAULT_REALM, type NodeRecord } from "../../memory/model.ts";
import { maskSecrets } from "../../memory/secrets.ts";
import type { Failure } from "./gathering.ts";
import { added, tallySchema } from "./tally.ts";

/**
 * What a failure that repeats is remembered as: one memory for each fingerprint, whose props have the counts and the
 * evidence, and whose text says them.
 */
const SOURCE = "ci_correlate";

const learningProps = tallySchema.extend({ message: z.string(), repository: z.string() });
type LearningProps = z.output<typeof learningProps>;

export function learningId(fingerprint: string): string {
  return topicId(DEFAULT_REALM, topicOf(fingerprint));
}

/** The memory as it is to be saved, with the names of the wire. The words that somebody gave it instead of ours stay. */
export function learningOf({ fingerprint, repository, excerpt, tally }: Failure, before: NodeRecord | undefined) {
  const known = propsIn(before);
  const props: LearningProps = {
    ...added(known, tally),
    message: known?.message ?? excerpt,
    repository,
  };
  const said = { kind: "memory", topic_key: topicOf(fingerprint), props: { ...before?.props, ...props } };
  if (before !== undefined && (known === undefined || before.content !== textOf(known))) {
    return { ...said, content: before.content };
  }
  return {
    ...said,
    memory_type: "learning",
    content: textOf(props),
    tags: before?.tags ?? ["ci"],
    source: SOURCE,
    trust: "derived",
  };
}

function topicOf(fingerprint: string): string {
  return `ci:${fingerprint}`;
}

function propsIn(node: NodeRecord | undefined): LearningProps | undefined {
  return node === undefined ? undefined : learningProps.safeParse(node.props).data;
}

/** As it is stored. */
function textOf({ message, repository, occurrences, first_seen, last_seen, commits, files }: LearningProps): string {
  const where = repository === "" ? "" : ` in ${repository}`;
  const evidence = [
    `Seen ${occurrences} times, first ${first_seen || "at an unknown time"}, last ${last_seen || "at an unknown time"}.`,
    ...(commits.length === 0 ? [] : [`Commits before it: ${commits.join(", ")}.`]),
    ...(files.length === 0 ? [] : [`Files before it: ${files.join(", ")}.`]),
  ];
  return maskSecrets(`A failure${where} repeats: ${message}\n${evidence.join("\n")}`.trim());
}
