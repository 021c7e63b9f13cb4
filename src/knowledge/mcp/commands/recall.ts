import { fieldText, listIn, type Json } from "../../../client/api.ts";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { harmless, visible } from "../../../client/text.ts";
import { callTool, withToolFlags, type ToolFlags } from "./call-tool.ts";

type Flags = ToolFlags & { realm?: string; limit?: string; asOf?: string; knownAt?: string };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("recall")
    .description("Find what is remembered, by a question in plain words, the best first.")
    .argument("<text>", "the question")
    .option("--realm <realm>", "only of this realm; all that you may see by default")
    .option("--limit <count>", "at most so many memories (1 to 100); as the memory's settings say by default")
    .option("--as-of <time>", "what held then (RFC 3339, as 2026-11-01T00:00:00Z)")
    .option("--known-at <time>", "as it was recorded by then (RFC 3339)");
  withExamples(withToolFlags(command), [
    'engine recall "On which port does the gateway listen?"',
    'engine recall "how do we deploy" --realm project:web --limit 3 --json',
    'engine recall "which is the primary database?" --as-of 2026-11-01T00:00:00Z',
  ]).action(context.action((text: string, flags: Flags) => recall(context, text, flags)));
};

async function recall(context: CliContext, text: string, flags: Flags): Promise<number> {
  const answer = await callTool(context, flags, "recall_memory", {
    query: text,
    realms: flags.realm === undefined ? undefined : [flags.realm],
    limit: limitOf(flags.limit),
    as_of: flags.asOf,
    known_at: flags.knownAt,
  });
  if (flags.json === true) await context.writeJson(answer);
  else await writeFound(context, answer);
  return EXIT.ok;
}

function limitOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > 100) throw new CliError("--limit is a number from 1 to 100", EXIT.usage);
  return limit;
}

async function writeFound(context: CliContext, answer: Json): Promise<void> {
  const memories = listIn(answer, "memories");
  const entities = listIn(answer, "entities");
  if (memories.length === 0 && entities.length === 0) await context.writeLine("nothing that is remembered fits");
  for (const memory of memories) await writeNode(context, memory, memory["memory_type"]);
  for (const entity of entities) await writeNode(context, entity, entity["entity_kind"]);
  if (answer["truncated"] === true) context.note("the answer is cut off: ask for fewer with --limit");
}

/** What it says, indented below what it is: a text cannot pass for the head of another. */
async function writeNode(context: CliContext, node: Json, type: unknown): Promise<void> {
  const { id, name, realm, content, updated_at: updated, invalidated_at: ended } = node;
  const title = name === undefined ? fieldText(type) : `${fieldText(type)} ${fieldText(name)}`;
  const facts = [fieldText(realm), fieldText(id), `of ${fieldText(updated)}`];
  if (ended !== undefined) facts.push(`invalid since ${fieldText(ended)}`);
  await context.writeLine(
    `${context.style("bold", visible(title))}  ${context.style("dim", visible(facts.join("  ")))}`,
  );
  for (const line of harmless(fieldText(content)).split("\n")) {
    if (line.trim() !== "") await context.writeLine(`  ${line}`);
  }
}
