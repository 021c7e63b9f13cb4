import type { Command } from "commander";
import {
  callApi,
  callTarget,
  countText,
  fieldCell,
  fieldText,
  listIn,
  targetOf,
  withApiFlags,
  type ApiFlags,
  type Json,
} from "../../../client/api.ts";
import type { Target } from "../../../client/client.ts";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { EXIT } from "../../../client/failure.ts";
import { renderTable } from "../../../client/table.ts";
import { harmless, visible } from "../../../client/text.ts";
import { sessionPath, SESSIONS_PATH } from "./session-path.ts";

const EXAMPLE_ID = "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11";
const FIELDS = ["session_id", "title", "database", "source", "turn_count", "created_at", "last_active"] as const;

export const register: RegisterCommand = (program, context) => {
  const group = program.command("sessions").description("See and delete the conversations of engine query.");
  const list = group.command("list").description("List your sessions, the last active first; an admin sees all.");
  withExamples(withApiFlags(list), ["engine sessions list", "engine sessions list --json"]).action(
    context.action((flags: ApiFlags) => listSessions(context, flags)),
  );
  ofSession(group, context, { name: "show", about: "Show a session, and what its older turns came to.", run: show });
  ofSession(group, context, { name: "turns", about: "Print what was asked and answered in a session.", run: turns });
  ofSession(group, context, {
    name: "delete",
    about: "Delete a session with its turns; the records of its runs stay.",
    run: remove,
  });
};

type OfSession = {
  name: string;
  about: string;
  run: (context: CliContext, id: string, flags: ApiFlags) => Promise<number>;
};

function ofSession(group: Command, context: CliContext, { name, about, run }: OfSession): void {
  const command = group.command(name).description(about).argument("<id>", "id of the session");
  withExamples(withApiFlags(command), [
    `engine sessions ${name} ${EXAMPLE_ID}`,
    `engine sessions ${name} ${EXAMPLE_ID} --json`,
  ]).action(context.action((id: string, flags: ApiFlags) => run(context, id, flags)));
}

async function listSessions(context: CliContext, flags: ApiFlags): Promise<number> {
  const sessions = listIn(await callApi(context, flags, "GET", SESSIONS_PATH), "sessions");
  if (flags.json === true) await context.writeJson(sessions);
  else if (sessions.length === 0) await context.writeLine("there are no sessions");
  else {
    const rows = sessions.map((session) =>
      [session["session_id"], session["last_active"], session["turn_count"], session["database"], session["title"]].map(
        fieldCell,
      ),
    );
    await context.writeLine(renderTable(["ID", "LAST ACTIVE", "TURNS", "DATABASE", "TITLE"], rows, context.style));
  }
  return EXIT.ok;
}

async function show(context: CliContext, id: string, flags: ApiFlags): Promise<number> {
  const session = await callApi(context, flags, "GET", sessionPath(id));
  if (flags.json === true) {
    await context.writeJson(session);
    return EXIT.ok;
  }
  for (const name of FIELDS) await context.writeLine(`${name.padEnd(12)}  ${visible(fieldText(session[name]))}`);
  const { rolling_summary: summary } = session;
  if (typeof summary === "string") await writeIndented(context, "summary", summary);
  return EXIT.ok;
}

async function turns(context: CliContext, id: string, flags: ApiFlags): Promise<number> {
  const found = await allTurns(context, await targetOf(context, flags), id);
  if (flags.json === true) await context.writeJson(found);
  else if (found.length === 0) await context.writeLine("nothing was asked in this session");
  else {
    for (const { role, created_at: at, content } of found) {
      await writeIndented(context, `${fieldText(role)}  ${fieldText(at)}`, fieldText(content));
    }
  }
  return EXIT.ok;
}

async function allTurns(context: CliContext, target: Target, id: string): Promise<Json[]> {
  const all: Json[] = [];
  for (;;) {
    const last = all.at(-1);
    const after = last === undefined ? "" : `?after=${fieldText(last["turn_index"])}`;
    const answer = await callTarget(context, target, "GET", `${sessionPath(id)}/turns${after}`);
    const found = listIn(answer, "turns");
    all.push(...found);
    if (answer["truncated"] !== true || found.length === 0) return all;
  }
}

/** A text below what it is: it cannot pass for the head of another. */
async function writeIndented(context: CliContext, title: string, text: string): Promise<void> {
  await context.writeLine(context.style("bold", visible(title)));
  for (const line of harmless(text.replaceAll("\r", "")).split("\n")) await context.writeLine(`  ${line}`.trimEnd());
}

async function remove(context: CliContext, id: string, flags: ApiFlags): Promise<number> {
  const target = await targetOf(context, flags);
  const { turn_count: count } = await callTarget(context, target, "GET", sessionPath(id));
  const answer = await callTarget(context, target, "DELETE", sessionPath(id));
  if (flags.json === true) await context.writeJson(answer);
  else await context.writeLine(`session ${visible(id)} deleted, with ${countText(count, "turn")}`);
  return EXIT.ok;
}
