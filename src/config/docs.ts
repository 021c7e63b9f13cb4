import type { Option, OptionRows } from "./option.ts";
import { withRows } from "./options.ts";

const INTRODUCTION = `# Configuration

<!-- Printed by \`npm run docs\`; edit \`src/config/options.ts\` and the \`options.ts\` of the features instead. -->

Options come from four places; later ones win: the default, the TOML file named by \`--config\` or \`ENGINE_CONFIG\`, the environment, a flag of the command line. \`engine config\` prints the effective values and where each came from, without secrets.

- An empty variable counts as unset.
- A value that is not accepted stops the start with exit code 2 and a message that names the variable, the value and what is accepted.
- An unknown \`ENGINE_…\` variable or TOML key has no effect and gets a warning.
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

const SECTIONS: readonly (readonly [prefix: string, title: string])[] = [
  ["", "The file itself"],
  ["storage", "Storage"],
  ["objstore", "Object store (S3)"],
  ["catalog", "Catalog"],
  ["server", "Server"],
  ["auth", "Authentication"],
  ["security", "API keys"],
  ["credentials", "Credentials"],
  ["oauth", "Connecting accounts (OAuth)"],
  ["ingest", "Ingest"],
  ["query", "Queries"],
  ["compaction", "Compaction"],
  ["retention", "Retention and deletion"],
  ["fabric", "Jobs and the nodes that run them"],
  ["sandbox", "Sandboxes and the nodes that run them"],
  ["client", "Client commands"],
  ["log", "Logging"],
];

/** The options of a feature, the name of their table in the TOML file, and the heading where that is a new table. */
type OwnOptions = { name: string; title: string; options: OptionRows };

/** The reference of all options, as Markdown. Throws for an option that belongs to no section. */
export function renderConfigurationDoc(features: readonly OwnOptions[] = []): string {
  const rows = Object.fromEntries(features.flatMap((feature) => Object.entries(feature.options)));
  const options = Object.values(withRows(rows));
  const known = new Set(SECTIONS.map(([prefix]) => prefix));
  const added = features.filter(({ name }) => !known.has(name)).map(({ name, title }) => [name, title] as const);
  const all = [...SECTIONS, ...added];
  const homeless = options.filter((option) => !all.some(([prefix]) => prefix === tableOf(option)));
  if (homeless.length > 0) throw new Error(`no section has ${homeless.map(({ toml }) => toml).join()}`);
  const sections = all.map(([prefix, title]) => {
    const rows = options.filter((option) => tableOf(option) === prefix).map(renderRow);
    return `## ${title}\n\n${HEADER}${rows.join("\n")}\n`;
  });
  return `${INTRODUCTION}\n${sections.join("\n")}`;
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
  const secret = option.secret === true ? " Secrets in it are never printed." : "";
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
