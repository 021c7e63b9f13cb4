import type { CliContext } from "../client/context.ts";
import type { Prepared, Workspace } from "./workspace.ts";

/**
 * Where a deployment runs: this machine, or a cloud. The commands own the workspace, its lock, questions and output; a
 * target says what it would do, and does it.
 */
export interface DeployTarget {
  /** What `init` writes: asks for what the flags leave open. Nothing is written yet. @throws CliError */
  prepare(request: InitRequest): Promise<Prepared>;
  /**
   * What `init` writes once an identity provider knows the deployment: `connect` gets the addresses at which browsers
   * reach it, the main one first. Nothing is written yet. @throws CliError
   */
  addIdentity(workspace: Workspace, prepared: Prepared, connect: ConnectIdentity): Promise<Prepared>;
  /** What `apply` would do now; changes nothing. @throws CliError for what cannot be done here */
  plan(workspace: Workspace): Promise<Plan>;
  /** Makes it so and waits until it is healthy; may be repeated after any failure. @throws CliError */
  apply(workspace: Workspace, plan: Plan): Promise<Applied>;
  status(workspace: Workspace): Promise<DeploymentStatus>;
  /** Sentences that name what `destroy` takes away, and what it keeps. */
  losses(workspace: Workspace, options: DestroyOptions): Promise<readonly string[]>;
  /** Ends what runs; with `isForced` what it stored goes too. @throws CliError */
  destroy(workspace: Workspace, options: DestroyOptions): Promise<void>;
}

export type DestroyOptions = { isForced: boolean };

export type ConnectIdentity = (urls: readonly [string, ...string[]]) => Promise<IdentitySettings>;

/** ENGINE_IDP_URL and ENGINE_IDP_ANON_KEY. */
export type IdentitySettings = { url: string; publicKey: string };

export type InitFlags = {
  tool?: string;
  region?: string;
  domain?: string;
  /** Takes defaults, and asks nothing. */
  yes?: true;
};

export type InitRequest = { name: string; flags: InitFlags; context: CliContext; mayAsk: boolean };

export type Change = { action: "create" | "start" | "restart" | "change" | "remove"; subject: string; reason: string };

/** An empty list of changes: everything is as it should be. */
export type Plan = { changes: readonly Change[]; commands: readonly string[] };

export type Applied = {
  url: string;
  /** Shown once: undefined when an earlier `up` has shown it. */
  adminToken: string | undefined;
};

export type DeploymentStatus = {
  state: "healthy" | "degraded" | "stopped" | "not deployed";
  url: string | undefined;
  processes: readonly ProcessStatus[];
  /** Sentences: what differs from the specification. */
  drift: readonly string[];
};

export type ProcessStatus = {
  name: string;
  state: string;
  version: string | undefined;
  processId: number | undefined;
  url: string | undefined;
};
