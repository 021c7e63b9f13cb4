import { PassThrough } from "node:stream";
import { systemClock } from "../core/clock.ts";
import { systemRandom } from "../core/random.ts";
import type { FeatureParts } from "../feature/feature.ts";
import { commandTree, flatten, type CommandNode } from "./command-tree.ts";
import { CliContext } from "../client/context.ts";
import { examplesOf } from "../client/examples.ts";
import { buildProgram } from "./program.ts";

const INTRODUCTION = `# Command line

<!-- Printed from the commands by \`npm run docs\`; edit \`src/cli/commands/\` and the \`commands/\` of the features instead. -->

\`engine\` runs the server, talks to one over HTTP, and administers a catalog directly. Options come from flags, the environment and a TOML file: see [configuration](configuration.md).

- Results go to standard output; errors, warnings and progress to standard error, an error as one line \`error: …\`.
- Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 4 the server wants another token.
- The server is the one of \`--server\`, else of \`ENGINE_SERVER_URL\`, else the one saved by \`engine connect\` or \`engine login\`, else http://127.0.0.1:7777. The saved token goes only to the server that it was saved for; the session of \`engine login\` is renewed by the commands that use it. Where none was chosen, \`recall\`, \`remember\`, \`entity\` and \`distill\` ask the engine of ENGINE_HOME instead ([MCP](mcp.md)).
- \`NO_COLOR\` turns colours off.
`;

/** The reference of all commands, as Markdown. */
export async function renderCliDoc(features: readonly FeatureParts[] = []): Promise<string> {
  const program = await buildProgram(referenceContext(), features);
  const [root, ...nodes] = flatten(commandTree(program));
  const overview = root === undefined ? "" : renderOptions(root);
  return [INTRODUCTION, overview, ...nodes.filter((node) => node.children.length === 0).map(renderCommand)].join("\n");
}

/** The tree does not depend on the world; nothing of this is used. */
function referenceContext(): CliContext {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const unused = { clock: systemClock, random: systemRandom, env: {}, stdin, stdout, stderr, version: "" };
  return new CliContext({
    ...unused,
    serve: () => Promise.resolve(0),
    rows: () => Promise.resolve({}),
    migrations: () => Promise.resolve([]),
  });
}

function renderCommand(node: CommandNode): string {
  const usage = ["engine", ...node.path, ...node.arguments.map((argument) => `<${argument.name()}>`), "[options]"];
  const args = node.arguments.map((argument) => {
    const choices = argument.argChoices === undefined ? "" : ` (${argument.argChoices.join(", ")})`;
    return `- \`<${argument.name()}>\`: ${argument.description}${choices}`;
  });
  const sections = [
    `## engine ${node.path.join(" ")}`,
    node.command.description(),
    fenced([usage.join(" ")]),
    [...args, renderOptions(node).trimEnd()].join("\n"),
    fenced(examplesOf(node.command)),
  ];
  return `${sections.join("\n\n")}\n`;
}

function renderOptions(node: CommandNode): string {
  const lines = node.options.map((option) => {
    const notes = [
      option.mandatory ? "required" : "",
      option.argChoices === undefined ? "" : `one of ${option.argChoices.join(", ")}`,
      option.defaultValue === undefined ? "" : `default \`${String(option.defaultValue)}\``,
    ].filter((note) => note !== "");
    return `- \`${option.flags}\`: ${option.description}${notes.length === 0 ? "" : ` (${notes.join("; ")})`}`;
  });
  return `${lines.join("\n")}\n`;
}

function fenced(lines: readonly string[]): string {
  return ["```sh", ...lines, "```"].join("\n");
}
