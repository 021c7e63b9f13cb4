import { cutWithin } from "../../../core/cut-text.ts";
import { z } from "zod";
import { topicId } from "../../memory/ids.ts";
import { DEFAULT_REALM, type NodeRecord } from "../../memory/model.ts";
import { maskSecrets } from "../../memory/secrets.ts";
import { PIPELINE_LIMITS } from "../limits.ts";
import type { Failure } from "./gathering.ts";
import { added, tallySchema, type Tally } from "./tally.ts";

/**
 * What a failure that repeats is remembered as: one memory for each fingerprint. Its text says what failed, and stays the
 * same, so that it is embedded once; its props have the counts and the evidence.
 */
const SOURCE = "ci_correlate";

const learningProps = tallySchema.extend({ message: z.string(), repository: z.string() });
type LearningProps = z.output<typeof learningProps>;

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

export function learningId(fingerprint: string): string {
  return topicId(DEFAULT_REALM, topicOf(fingerprint));
}

/** Whether somebody has ended it, or states something in its place: then the pipeline leaves it alone. */
export function isTakenOver({ trust, invalidatedAtUs, invalidatedBy, validToUs }: NodeRecord): boolean {
  const isEnded = invalidatedAtUs !== undefined || validToUs !== undefined;
  return trust === "stated" || (isEnded && invalidatedBy !== SOURCE);
}

/**
 * Whether the learning gets a new version for what was seen since its last one. That is when its count has doubled, and
 * otherwise once an hour, so a failure that comes all the time does not make a version at every poll.
 */
export function isWorthWriting(before: NodeRecord, tally: Tally, nowUs: number): boolean {
  const written = propsIn(before)?.occurrences ?? 0;
  return tally.occurrences >= written || nowUs - before.updatedAtUs >= PIPELINE_LIMITS.unwrittenMs * 1_000;
}

/** The memory as it is to be saved, with the names of the wire. The words that somebody gave it instead of ours stay. */
export function learningOf({ fingerprint, repository, excerpt, tally }: Failure, before: NodeRecord | undefined) {
  const known = propsIn(before);
  const props: LearningProps = {
    ...added(known, tally),
    message: known?.message ?? excerpt,
    repository,
  };
  const said = { kind: "memory", topic_key: topicOf(fingerprint), props };
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

/** Bounded, as anybody may have saved them. */
function propsIn(node: NodeRecord | undefined): LearningProps | undefined {
  const props = node === undefined ? undefined : learningProps.safeParse(node.props).data;
  if (props === undefined) return undefined;
  return {
    occurrences: Math.min(props.occurrences, PIPELINE_LIMITS.occurrences),
    first_seen: timeIn(props.first_seen),
    last_seen: timeIn(props.last_seen),
    commits: props.commits.slice(-PIPELINE_LIMITS.commits).map((each) => cutWithin(each, PIPELINE_LIMITS.commitChars)),
    files: props.files.slice(-PIPELINE_LIMITS.files).map((each) => cutWithin(each, PIPELINE_LIMITS.fileChars)),
    message: cutWithin(props.message, PIPELINE_LIMITS.excerptChars),
    repository: cutWithin(props.repository, PIPELINE_LIMITS.repositoryChars),
  };
}

function timeIn(text: string): string {
  return TIME.test(text) ? text : "";
}

/** As it is stored. */
function textOf({ message, repository }: Pick<LearningProps, "message" | "repository">): string {
  const where = repository === "" ? "" : ` in ${repository}`;
  return maskSecrets(`A failure${where} repeats: ${message}`.trim());
}
