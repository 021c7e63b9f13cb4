import type { BuiltImage } from "./images/image.ts";

/** What a sandbox is made by: a create request of which every field has its value. */
export type SandboxSpec = {
  agentProvider: string;
  name: string | undefined;
  /** Undefined: the node's default image. */
  image: string | undefined;
  /** What that is where it was built, or what the operator gives the agent provider. */
  builtImage?: BuiltImage | undefined;
  limits: ResourceLimits;
  persistence: Persistence;
  network: NetworkSpec;
  envVars: Readonly<Record<string, string>>;
  volumes: readonly VolumeMount[];
  ports: readonly PortSpec[];
  provisioningScripts: readonly ProvisioningScript[];
  labels: Readonly<Record<string, string>>;
  /** How long it may be up, from each start on; undefined: for ever. */
  timeoutSecs: number | undefined;
  /** Undefined: the agent's own defaults. */
  agentConfig?: AgentConfig | undefined;
  /** Absolute: where what is set up, and the agent, begin. Undefined: the agent's home. */
  workingDirectory?: string | undefined;
  /** Patterns, as in a `.gitignore`, of what is not checked out of repositories. */
  exclusions?: readonly string[];
  gitRepos?: readonly GitRepo[];
  binaries?: readonly Binary[];
  skills?: readonly Skill[];
  preCommands?: readonly PreCommand[];
  subagents?: readonly Subagent[];
  credentials?: readonly CredentialUse[];
};

/** A secret of the store that is added outside of the sandbox to requests to these hosts. */
export type CredentialUse = {
  credentialId: string;
  /** Variable that has a placeholder inside; undefined: none. */
  envVar: string | undefined;
  /** Exact names, canonical (host-names.ts). */
  hosts: readonly string[];
};

/** A repository that is cloned when the sandbox is made, to an absolute path. No pin: the server's default branch. */
export type GitRepo = {
  url: string;
  pin: { kind: "branch" | "tag" | "commit"; name: string } | undefined;
  path: string;
  /** Commits of history; undefined: all. */
  depth: number | undefined;
  /** What the gateway adds to requests for it; undefined: nothing. */
  credentialId?: string | undefined;
};

/** A package that is installed when the sandbox is made; no version: the newest. */
export type Binary = { manager: "apt" | "cargo" | "npm" | "pip"; name: string; version: string | undefined };

/** A folder with a `SKILL.md`, of a repository, which the agent finds among its skills. */
export type Skill = {
  /** Of the repository. */
  source: string;
  /** A branch or tag, or a whole commit; undefined: the server's default branch. */
  ref: string | undefined;
  /** In the repository; undefined: all of it is the skill. */
  path: string | undefined;
  name: string;
};

/** An agent that the agent may give work to. */
export type Subagent = {
  name: string;
  /** When it is of use. */
  description: string;
  prompt: string;
  /** Undefined: that of the agent. */
  model: string | undefined;
  /** By the agent's own names for them; undefined: all that the agent has. */
  tools: readonly string[] | undefined;
};

/** A server of the Model Context Protocol that the agent is to use. `${NAME}` in values is a variable of the sandbox. */
export type McpServer = { name: string } & (
  | { type: "stdio"; command: string; args: readonly string[]; env: Readonly<Record<string, string>> }
  | { type: "http" | "sse"; url: string; headers: Readonly<Record<string, string>> }
);

/** A program that the agent's user runs before the sandbox runs. */
export type PreCommand = { name: string; command: string; args: readonly string[]; timeoutSecs: number };

/** How the agent of a sandbox is to be. */
export type AgentConfig = {
  /** As in the request; the sandbox's own where it says none. */
  provider: string;
  /** Undefined: the agent's default. */
  model: string | undefined;
  systemPrompt: string | undefined;
  maxTokens: number | undefined;
  toolsEnabled: boolean;
  /** Names, and patterns with `*`; none: all that are not denied. */
  allowedTools: readonly string[];
  deniedTools: readonly string[];
  mcpServers?: readonly McpServer[];
};

/** CPUs may be a fraction; MB are MiB. `maxProcesses` counts threads too, as the kernel does. */
export type ResourceLimits = { cpuCores: number; memoryMb: number; diskMb: number; maxProcesses: number };

/** MiB of the disk where the request does not say. Machines are prepared with such disks. */
export const DEFAULT_DISK_MB = 4_096;

export const PERSISTENCE = ["ephemeral", "persistent"] as const;
/** `ephemeral`: its disk goes when it stops. `persistent`: the disk stays on its node until it is deleted. */
export type Persistence = (typeof PERSISTENCE)[number];

export type NetworkSpec = {
  enabled: boolean;
  /** Exact names, and `*.example.com` for those below one. None: nothing is reached. */
  allowedHosts: readonly string[];
  /** Addresses of the name servers that the proxy asks; none: those of the node. */
  dnsServers: readonly string[];
};

/** Named storage of the tenant, on a disk of its own; made when first used. */
export type VolumeMount = { name: string; mountPath: string; readOnly: boolean; sizeMb: number };

/** Where the proxy of a sandbox listens inside, on loopback. */
export const PROXY_PORT = 3128;

/** A TCP port inside on which something speaks HTTP, answered at the sandbox's `endpoint_url`. */
export type PortSpec = { port: number; name: string | undefined };

/** Run once by `sh -c` when the sandbox is made, as root of the sandbox unless it says otherwise. */
export type ProvisioningScript = { name: string; script: string; user: "root" | "agent"; timeoutSecs: number };
