import { z } from "zod";
import { credentialId } from "./credential-fields.ts";
import type { Binary, GitRepo, PreCommand } from "../../contract/spec.ts";
import { line, text } from "../../contract/text-fields.ts";
import { repositoryName, toRepositoryUrl } from "../../contract/repository-url.ts";
import { AGENT_ROOTS, folderInside } from "../../contract/agent-folders.ts";

/** Fields of a create request about what is set up in a sandbox before anything runs in it. */

const MAX_SETUP = { repositories: 32, binaries: 64, preCommands: 64, args: 256, exclusions: 64 } as const;
const REF_CHARS = 255;
const PATH_CHARS = 1_024;
const ARG_CHARS = 32_768;
const MOST_DEPTH = 1_000_000;
const DAY_SECS = 86_400;
const COMMAND_SECS = 600;

const REF_RULE = "accepted are names of git: no spaces, none of ~^:?*[\\, no `..`, no `-` first";
/** A branch or a tag. */
export const ref = z
  .string()
  .max(REF_CHARS)
  .refine((name) => name.isWellFormed() && isRefName(name), REF_RULE);

const folders = AGENT_ROOTS.join(" and ");
const path = z.string().max(PATH_CHARS);

const workingDirectory = path
  .refine((value) => folderInside(value) !== undefined, `accepted are absolute paths in ${folders}, without .. in them`)
  .describe(`Where repositories are cloned to, and commands and the agent begin; in ${folders}. The home by default.`);

const repository = z
  .strictObject({
    url: z.string().transform((value, context) => {
      const url = toRepositoryUrl(value);
      if (url !== undefined) return url;
      context.addIssue({
        code: "custom",
        message: "accepted are https:// URLs of up to 2,048 characters, without user, query and fragment",
      });
      return z.NEVER;
    }),
    branch: ref.nullish().describe("That of the server by default."),
    tag: ref.nullish(),
    commit: z
      .string()
      .regex(/^(?:[0-9a-fA-F]{40}|[0-9a-fA-F]{64})$/, "accepted is a whole hash")
      .nullish(),
    dest_path: path.nullish().describe("Below the working directory, by the name of the repository, by default."),
    credential_id: credentialId.nullish(),
    depth: z.int().min(1).max(MOST_DEPTH).nullish().describe("Commits of history; all by default."),
  })
  .refine((repo) => pinsOf(repo).length <= 1, "accepted is one of branch, tag and commit");

const gitRepos = z
  .array(repository)
  .max(MAX_SETUP.repositories)
  .default([])
  .describe("Cloned by the agent's user when the sandbox is made; one that cannot be, fails it. Needs the network.");

/** What each manager calls a package, and a version of one. */
const BINARY_NAMES = {
  apt: /^[a-z0-9][a-z0-9+.-]{1,127}$/,
  cargo: /^[A-Za-z][A-Za-z0-9_-]{0,63}$/,
  npm: /^(?:@[a-z0-9][a-z0-9._-]{0,99}\/)?[a-z0-9][a-z0-9._-]{0,127}$/,
  pip: /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$/,
} as const;
const VERSION = /^[A-Za-z0-9][A-Za-z0-9.+~:_-]{0,99}$/;

const binary = z
  .strictObject({
    manager: z.enum(["apt", "cargo", "npm", "pip"]),
    name: z.string(),
    version: z.string().regex(VERSION, "accepted is one version").nullish().describe("The newest by default."),
  })
  .refine(({ manager, name }) => BINARY_NAMES[manager].test(name), {
    error: "accepted is the name of one package, as its manager has it",
    path: ["name"],
  });

const binaries = z
  .array(binary)
  .max(MAX_SETUP.binaries)
  .default([])
  .describe("Installed when the sandbox is made, apt's as its root, others for the agent. Needs the network.");

const argument = text(ARG_CHARS);
const preCommand = z.strictObject({
  name: line(100).optional().describe("Of the command, by default."),
  command: argument.min(1).describe("A program: nothing is read into it by a shell."),
  args: z.array(argument).max(MAX_SETUP.args).default([]),
  timeout_secs: z.int().min(1).max(DAY_SECS).optional().describe(`${COMMAND_SECS} by default.`),
});

const preCommands = z
  .array(preCommand)
  .max(MAX_SETUP.preCommands)
  .default([])
  .describe("Run by the agent's user, one after the other, last of all before the sandbox runs.");

const exclusions = z
  .array(
    line(PATH_CHARS).refine(
      (pattern) => !pattern.startsWith("!"),
      "accepted are patterns of what is left out, not of what is brought back",
    ),
  )
  .max(MAX_SETUP.exclusions)
  .default([])
  .describe("Patterns, as in a `.gitignore`, of what is not checked out of repositories (git's sparse checkout).");

export const setupFields = {
  working_directory: workingDirectory.nullish(),
  exclusions,
  git_repos: gitRepos,
  binaries,
  pre_commands: preCommands,
};
const setup = z.object(setupFields);
type Setup = z.output<typeof setup>;

type SetupSpec = {
  workingDirectory: string | undefined;
  exclusions?: readonly string[];
  gitRepos: readonly GitRepo[];
  binaries: readonly Binary[];
  preCommands: readonly PreCommand[];
};

/** Reports what does not fit together to the context. */
export function toSetup(body: Setup, context: Pick<z.RefinementCtx, "addIssue">): SetupSpec {
  const home = body.working_directory ?? AGENT_ROOTS[0];
  const taken = new Set<string>();
  const found = body.git_repos.map((one, i): GitRepo => {
    const at = folderInside(one.dest_path ?? repositoryName(one.url), home);
    const refuse = (message: string): void => {
      context.addIssue({ code: "custom", message, path: ["git_repos", i, "dest_path"] });
    };
    if (at === undefined) refuse(`accepted are paths that stay in ${folders}, relative to the working directory`);
    else if (taken.has(at)) refuse("another repository is cloned to the same folder");
    taken.add(at ?? "");
    const use = one.credential_id ?? undefined;
    const repo = { url: one.url, pin: pinsOf(one)[0], path: at ?? "", depth: one.depth ?? undefined };
    return use === undefined ? repo : { ...repo, credentialId: use };
  });
  return {
    workingDirectory: body.working_directory ?? undefined,
    ...(body.exclusions.length > 0 && { exclusions: body.exclusions }),
    gitRepos: found,
    binaries: body.binaries.map(({ version, ...rest }) => ({ ...rest, version: version ?? undefined })),
    preCommands: body.pre_commands.map(({ timeout_secs: timeoutSecs = COMMAND_SECS, name, ...rest }) => ({
      ...rest,
      name: name ?? rest.command.slice(0, 100).replaceAll(/\p{Cc}/gu, " "),
      timeoutSecs,
    })),
  };
}

/** What is cloned and installed comes from the network, and credentials are for it: they cannot be without. */
export function isNetworkOn(
  { enabled }: { enabled?: boolean | undefined },
  body: Setup & Readonly<Record<"credentials" | "skills", readonly unknown[]>>,
  context: Pick<z.RefinementCtx, "addIssue">,
): boolean {
  const isNeeded = [body.git_repos, body.binaries, body.skills, body.credentials].some((all) => all.length > 0);
  if (enabled === false && isNeeded) {
    context.addIssue({
      code: "custom",
      message: "what is cloned and installed needs the network, and so do credentials",
      path: ["network", "enabled"],
    });
  }
  return enabled ?? isNeeded;
}

/** The fields that say the same, with every value. */
export function fromSetup(spec: Partial<SetupSpec>): Record<string, unknown> {
  const {
    workingDirectory: directory = null,
    exclusions: excluded = [],
    gitRepos: repos = [],
    binaries: all = [],
    preCommands: commands = [],
  } = spec;
  return {
    working_directory: directory,
    exclusions: excluded,
    git_repos: repos.map(({ url, pin, path: at, depth = null, credentialId: use = null }) => ({
      url,
      branch: pin?.kind === "branch" ? pin.name : null,
      tag: pin?.kind === "tag" ? pin.name : null,
      commit: pin?.kind === "commit" ? pin.name : null,
      dest_path: at,
      credential_id: use,
      depth,
    })),
    binaries: all.map(({ manager, name, version = null }) => ({ manager, name, version })),
    pre_commands: commands.map(({ name, command, args, timeoutSecs }) => ({
      name,
      command,
      args,
      timeout_secs: timeoutSecs,
    })),
  };
}

const PINS = ["branch", "tag", "commit"] as const;

function pinsOf(repo: Readonly<Partial<Record<(typeof PINS)[number], string | null | undefined>>>): GitRepo["pin"][] {
  return PINS.flatMap((kind) => {
    const name = repo[kind] ?? undefined;
    return name === undefined ? [] : [{ kind, name: kind === "commit" ? name.toLowerCase() : name }];
  });
}

/** The rules of git-check-ref-format(1). */
function isRefName(name: string): boolean {
  if (name === "@" || /^[-/]|\/$|\/\/|\.\.|@\{|\.$|[\s~^:?*[\\\p{Cc}]/u.test(name)) return false;
  return name.split("/").every((part) => part !== "" && !part.startsWith(".") && !part.endsWith(".lock"));
}
