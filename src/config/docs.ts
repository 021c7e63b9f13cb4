import type { Option, OptionRows } from "./option.ts";
import { OPTIONS, withRows } from "./options.ts";
import { fileVariableOf } from "./secret-file.ts";

const INTRODUCTION = `# Configuration

<!-- Printed by \`npm run docs\`; edit \`src/config/options.ts\` and the \`options.ts\` of the features instead. -->

Options come from four places; later ones win: the default, the TOML file named by \`--config\` or \`ENGINE_CONFIG\`, the environment, a flag of the command line. \`engine config\` prints the effective values and where each came from, without secrets.

- An empty variable counts as unset.
- A value that is not accepted stops the start with exit code 2 and a message that names the variable, the value and what is accepted.
- An unknown \`ENGINE_…\` variable or TOML key has no effect and gets a warning.
- A secret may be in a file instead: \`ENGINE_SECRET_KEY_FILE=/run/secrets/key\`, and so for every option whose row says so. It is read at the start, without a line break at its end. Setting both variables is refused, and so is a file that is missing, empty or not UTF-8, or that every user can write; one that every user can read gets a warning, except below \`/run/secrets\`, where containers have theirs.
- Relative paths start at the working directory, in the TOML file at the file's own folder; \`~\` is the user's home.
- Bytes may be written with a unit: \`64MiB\`, \`1GiB\`.

\`\`\`toml
[server]
port = 8080

[ingest]
flush_max_age_ms = 20
max_inflight_bytes = "512MiB"
\`\`\`

Side: S server, C command line and local engine, SC both.
`;

/** Of the options that belong to no feature, by their table in the TOML file. */
const SECTIONS: readonly (readonly [table: string, title: string])[] = [
  ["", "The file itself"],
  ["storage", "Storage"],
  ["objstore", "Object store (S3)"],
  ["catalog", "Catalog"],
  ["server", "Server"],
  ["retention", "Results that expire"],
  ["client", "Client commands"],
  ["log", "Logging"],
];

/** The reference of all options, as Markdown: those of no feature, then a section for each feature. */
export function renderConfigurationDoc(features: readonly { title: string; options: OptionRows }[] = []): string {
  // Throws for what two of them have.
  withRows(Object.fromEntries(features.flatMap(({ options }) => Object.entries(options))));
  const own: readonly Option<unknown>[] = Object.values(OPTIONS);
  const homeless = own.filter((option) => !SECTIONS.some(([table]) => table === tableOf(option)));
  if (homeless.length > 0) throw new Error(`no section has ${homeless.map(({ toml }) => toml).join()}`);
  const sections = [
    ...SECTIONS.map(([table, title]) =>
      section(
        title,
        own.filter((option) => tableOf(option) === table),
      ),
    ),
    ...features.map(({ title, options }) => section(title, Object.values(options))),
  ];
  return `${INTRODUCTION}\n${sections.join("\n")}`;
}

function section(title: string, options: readonly Option<unknown>[]): string {
  return `## ${title}\n\n${HEADER}${options.map(renderRow).join("\n")}\n`;
}

/** Its table in the TOML file; empty for an option that no file sets. */
function tableOf({ toml }: Option<unknown>): string {
  return toml?.split(".")[0] ?? "";
}

const HEADER = `| Variable | TOML key | Flag | Type and range | Default | Side | Purpose |
|---|---|---|---|---|---|---|
`;

function renderRow(option: Option<unknown>): string {
  const shown = option.defaultShown;
  const isValue = /^[\w$~:./-]+$/.test(shown);
  const file = fileVariableOf(option);
  const secret =
    option.secret === true
      ? ` Secrets in it are never printed.${file === undefined ? "" : ` \`${file}\` names a file that has it.`}`
      : "";
  const cells = [
    code(option.env),
    code(option.toml),
    code(option.flag),
    option.kind.label,
    isValue ? code(shown) : shown,
    option.side,
    option.doc + secret,
  ];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function code(text: string | undefined): string {
  return text === undefined ? "" : `\`${text}\``;
}
