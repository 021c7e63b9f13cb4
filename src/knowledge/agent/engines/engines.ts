import type { AuditLog, Origin } from "../../../auth/audit.ts";
import { roleIncludes, type Caller } from "../../../auth/caller.ts";
import * as kinds from "../../../config/kinds.ts";
import type { OptionValues } from "../../../config/option.ts";
import type { Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import { NOW, type RecordStore } from "../../../db/records.ts";
import { AGENT_LIMITS } from "../limits.ts";
import type { AGENT_OPTIONS } from "../options.ts";
import type { CliDeps } from "./cli/open-cli.ts";
import { ENGINE_KINDS, type EngineConfig, type EngineKind, type EngineProblem, type OpenedEngine } from "./engine.ts";
import { engineFields, toConfig, toFields, type EngineFields } from "./fields.ts";
import type { EngineKeys } from "./keys.ts";
import { ModelMenus, type ModelMenu } from "./menus.ts";
import type { AgentMetrics } from "../metrics.ts";
import { openEngine, type EngineTarget, type HostedConfig } from "./open-engine.ts";
import { problemOfFinish } from "./problems.ts";
import {
  baseUrlOf,
  checkKey,
  isListedHost,
  KEY_OPTIONS,
  operatorKeyOf,
  SET_IT,
  targetOf,
  type ProviderSettings,
} from "./target.ts";

/** Where providers are, the operator's keys, and who may choose an engine. */
export type EngineSettings = ProviderSettings & Pick<OptionValues<typeof AGENT_OPTIONS>, "agentEngineRole">;

export type AgentEnginesOptions = {
  records: RecordStore;
  audit: AuditLog;
  keys: EngineKeys;
  settings: EngineSettings;
  /** Undefined where the operator has named no program for the engine `cli`. */
  cli?: CliDeps | undefined;
  clock: Clock;
  log: Log;
  metrics: AgentMetrics;
};

/** Who chooses an engine, or asks for the menus. */
export type ChooserOrigin = Origin & { caller: Caller };

/** Of one kind. */
export type EngineChoice = ModelMenu & {
  kind: EngineKind;
  /** Whether it can be asked without a credential. */
  hasOperatorKey: boolean;
  /** Of `localmodel`: what `host` may be. */
  hosts: readonly string[];
};

export type EngineMenus = { engines: readonly EngineChoice[]; active: EngineConfig | undefined };

const KEY = "engine";
const NO_COMMAND = "the engine `cli` needs ENGINE_AGENT_COMMAND, which the operator of the server sets";

/**
 * The engine of the installation: one record, which every question is answered by. To choose it takes no more than the
 * role `read` unless the operator asks for more, so no field of it reaches further than the operator and the owners of
 * credentials have said: keys go to the addresses of the options only, a credential must be shared with everybody, and a
 * host must be listed.
 */
export class AgentEngines {
  readonly #options: AgentEnginesOptions;
  readonly #menus: ModelMenus;

  constructor(options: AgentEnginesOptions) {
    this.#options = options;
    this.#menus = new ModelMenus(options);
  }

  /** Undefined where nobody has chosen one. */
  async current(): Promise<EngineConfig | undefined> {
    const sql = "SELECT value FROM agent_settings WHERE key = ?";
    const [row] = await this.#options.records.rows(sql, [KEY]);
    if (row === undefined) return undefined;
    const read = engineFields.safeParse(JSON.parse(String(row["value"])));
    if (read.success) return toConfig(read.data);
    throw new EngineError("not_configured", `the engine was stored by another version of this program: ${SET_IT}`);
  }

  /**
   * Replaces the engine by one that is checked; whether it answers, `probe` says. Throws `bad_request_body` with the name
   * of a field that is not accepted, and `forbidden` for a caller without the role that the operator asks for.
   */
  async save(fields: EngineFields, origin: ChooserOrigin): Promise<EngineConfig> {
    const { records, audit } = this.#options;
    const config = await this.#checked(fields, origin.caller);
    const { kind, model, credentialId, host } = config;
    const sql =
      "INSERT INTO agent_settings (key, value, updated_by, updated_at_ms) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO " +
      "UPDATE SET value = excluded.value, updated_by = excluded.updated_by, updated_at_ms = excluded.updated_at_ms";
    const details = { kind, model, credential_id: credentialId, host };
    await records.transact([
      { sql, values: [KEY, JSON.stringify(toFields(config)), origin.caller.subject, NOW] },
      audit.statement({ origin, action: "agent.engine", target: kind, outcome: "ok", details }),
    ]);
    return config;
  }

  /**
   * The engine, ready to be asked; each call that uses a key is in the audit log. Throws `not_configured` and what to do
   * about it, where none is chosen, or its key or its host are not there any more.
   */
  async open(origin: Origin): Promise<OpenedEngine> {
    const config = await this.current();
    if (config === undefined) throw new EngineError("not_configured", `the agent has no engine: ${SET_IT}`);
    return await this.#opened(config, origin, "run");
  }

  /**
   * Has a candidate say one token, over the way that questions take. Throws `engine_failed` in the provider's words, or
   * saying what the candidate lacks; `engine_timeout` after 30 s; and as `save`. The signal is of a client that left.
   */
  async probe(fields: EngineFields, origin: ChooserOrigin, signal?: AbortSignal): Promise<EngineConfig> {
    const config = await this.#checked(fields, origin.caller);
    const engine = await this.#openedForProbe(config, origin);
    const { clock } = this.#options;
    const late = new AbortController();
    const timer = clock.after(AGENT_LIMITS.probeMs, () => late.abort(), { background: true });
    try {
      const problem = await sayOneToken(
        engine,
        AbortSignal.any([late.signal, ...(signal === undefined ? [] : [signal])]),
      );
      if (problem !== undefined) throw toEngineError(problem);
      return config;
    } catch (error) {
      if (signal?.aborted === true) throw new EngineError("cancelled", "the client left");
      if (late.signal.aborted) {
        const message = `the engine did not answer within ${AGENT_LIMITS.probeMs / 1_000} s`;
        throw new EngineError("engine_timeout", message);
      }
      if (error instanceof EngineError) throw error;
      // Without its cause: the library's error holds the request, and with it the key.
      throw toEngineError(engine.problemOf(error));
    } finally {
      timer.cancel();
      await engine.end();
    }
  }

  /** What one may choose from. A provider that gives no list has the built-in one. */
  async menus(origin: ChooserOrigin): Promise<EngineMenus> {
    const active = await ifConfigured(this.current());
    const engines = await Promise.all(ENGINE_KINDS.map((kind) => this.#choice(kind, active, origin)));
    return { engines, active };
  }

  async #choice(kind: EngineKind, active: EngineConfig | undefined, origin: Origin): Promise<EngineChoice> {
    const { settings, cli } = this.#options;
    if (kind === "cli") return { ...ModelMenus.builtIn(kind), kind, hasOperatorKey: cli !== undefined, hosts: [] };
    const { credentialId, host } = active?.kind === kind ? active : { credentialId: null, host: null };
    const config = { kind, credentialId, host };
    const keyName = config.credentialId ?? "";
    const target = {
      kind,
      baseUrl: baseUrlOf(config, settings),
      keyName,
      key: () => ifConfigured(this.#key(config, origin, "menu")),
    };
    const hosts = kind === "localmodel" ? [settings.localModelHost, ...(settings.localModelHosts ?? [])] : [];
    // A host that is not listed any more is not asked.
    const isReachable = config.host === null || hosts.includes(config.host);
    const menu = isReachable ? await this.#menus.of(target) : ModelMenus.builtIn(kind);
    const hasOperatorKey = kind === "localmodel" || operatorKeyOf(kind, settings) !== undefined;
    return { ...menu, kind, hasOperatorKey, hosts: [...new Set(hosts)] };
  }

  /** Throws for what is not accepted, in the form that the routes' own checks have. */
  async #checked(fields: EngineFields, caller: Caller): Promise<EngineConfig> {
    const { agentEngineRole } = this.#options.settings;
    if (!roleIncludes(caller.role, agentEngineRole)) {
      throw new EngineError("forbidden", `choosing the engine of the agent takes the role ${agentEngineRole}`);
    }
    if (fields.kind === "cli" && this.#options.cli === undefined) throw refused("kind", NO_COMMAND);
    checkExtras(fields);
    const host = this.#checkedHost(fields);
    await this.#checkCredential(fields, caller);
    return { ...toConfig(fields), host };
  }

  #checkedHost({ kind, host }: EngineFields): string | null {
    if (host === null) return null;
    if (kind !== "localmodel") throw refused("host", "only `localmodel` has one");
    const url = kinds.baseUrl.parse(host, { baseDir: "", userHome: "" });
    if (url === undefined) throw refused("host", `accepted is ${kinds.baseUrl.accepts}`);
    if (isListedHost(url, this.#options.settings)) return url;
    throw refused("host", "accepted is ENGINE_LOCALMODEL_HOST, and what the operator lists in ENGINE_LOCALMODEL_HOSTS");
  }

  async #checkCredential({ kind, credential_id: id }: EngineFields, caller: Caller): Promise<void> {
    if (id === null) return;
    if (kind === "localmodel" || kind === "cli") throw refused("credential_id", `\`${kind}\` is sent no key`);
    const found = await this.#options.keys.find(id, caller);
    if (found === undefined) throw refused("credential_id", "there is no such credential");
    if (found.kind !== "api_key") throw refused("credential_id", "accepted is a credential of the kind `api_key`");
    if (!found.shared)
      throw refused("credential_id", "everybody's questions would use it: its owner must share it first");
    if (found.databases === undefined) return;
    throw refused("credential_id", "the credential is limited to databases, and questions are asked about all of them");
  }

  async #openedForProbe(config: EngineConfig, origin: Origin): Promise<OpenedEngine> {
    try {
      return await this.#opened(config, origin, "test");
    } catch (error) {
      // A test fails in one of two ways, whatever is missing.
      if (error instanceof EngineError && error.code === "not_configured") {
        throw new EngineError("engine_failed", error.message);
      }
      throw error;
    }
  }

  async #opened(config: EngineConfig, origin: Origin, purpose: KeyPurpose): Promise<OpenedEngine> {
    const { kind } = config;
    if (kind !== "cli") {
      const hosted = { ...config, kind };
      return await openEngine(hosted, await this.#target(hosted, origin, purpose));
    }
    const { cli } = this.#options;
    if (cli === undefined) throw new EngineError("not_configured", `${NO_COMMAND}; or ${SET_IT}`);
    const { openCli } = await import("./cli/open-cli.ts");
    return openCli(config, cli);
  }

  #target(config: HostedConfig, origin: Origin, purpose: KeyPurpose): Promise<EngineTarget> {
    return targetOf(config, this.#options.settings, (keyed) => this.#key(keyed, origin, purpose));
  }

  /** The key, which is about to be used: that is on record before it is given out. */
  async #key(
    { kind, credentialId }: Pick<HostedConfig, "kind" | "credentialId">,
    origin: Origin,
    purpose: KeyPurpose,
  ): Promise<string | undefined> {
    if (kind === "localmodel") return undefined;
    const { keys, audit, settings } = this.#options;
    const key = credentialId === null ? operatorKeyOf(kind, settings) : (await keys.reveal(credentialId))?.trim();
    if (key === undefined) return undefined;
    checkKey(key);
    const target = credentialId ?? KEY_OPTIONS[kind];
    const details = { engine: kind, purpose };
    await audit.record({ origin, action: "credential.use", target, outcome: "ok", details });
    return key;
  }
}

/** For those who choose an engine, one that cannot be used is as good as none. */
async function ifConfigured<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof EngineError && error.code === "not_configured") return undefined;
    throw error;
  }
}

type KeyPurpose = "run" | "test" | "menu";

function checkExtras({ kind, extras }: EngineFields): void {
  const [first] = Object.entries(extras).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (kind === "cli" && first !== undefined) {
    throw refused(`extras.${first}`, "`cli` takes none: the program is configured by its operator");
  }
  const { thinking_budget_tokens: thinking, reasoning_effort: effort, temperature } = extras;
  if (thinking !== undefined && kind !== "anthropic") {
    throw refused("extras.thinking_budget_tokens", "only `anthropic` has it");
  }
  if (effort !== undefined && kind === "anthropic") {
    throw refused("extras.reasoning_effort", "`anthropic` does not have it");
  }
  if (kind !== "anthropic" || temperature === undefined) return;
  if (temperature > 1) throw refused("extras.temperature", "`anthropic` takes at most 1");
  if (thinking !== undefined) throw refused("extras.temperature", "a model that thinks by a budget takes none");
}

function refused(field: string, reason: string): EngineError {
  return new EngineError("bad_request_body", `${field}: ${reason}`);
}

/** The fewest that providers take: `openai` refuses less than 16. */
const PROBE_TOKENS = { anthropic: 1, openai: 16, localmodel: 1, cli: 1 } as const;

async function sayOneToken(engine: OpenedEngine, abortSignal: AbortSignal): Promise<EngineProblem | undefined> {
  const { generateText } = await import("ai");
  const { kind, model, temperature, providerOptions } = engine;
  const { finishReason } = await generateText({
    model,
    prompt: "Say OK.",
    maxOutputTokens: PROBE_TOKENS[kind],
    maxRetries: 0,
    providerOptions,
    abortSignal,
    ...(temperature !== undefined && { temperature }),
  });
  return problemOfFinish(finishReason);
}

function toEngineError({ code, message }: EngineProblem): EngineError {
  return new EngineError(code === "engine_timeout" ? code : "engine_failed", message);
}
