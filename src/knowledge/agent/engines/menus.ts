import { z } from "zod";
import type { Clock } from "../../../core/clock.ts";
import type { Log } from "../../../core/log.ts";
import { AGENT_LIMITS } from "../limits.ts";
import type { EngineKind, HostedKind } from "./engine.ts";
import type { AgentMetrics } from "../metrics.ts";
import { apiUrl } from "./open-engine.ts";
import { problemOf } from "./problems.ts";
import { providerFetch } from "./provider-fetch.ts";

/** The models that one may choose from. A menu is a help and no rule: any model may be named. */
export type ModelMenu = {
  models: readonly string[];
  /** `provider`: it was asked. `built_in`: it was not, or gave no list. */
  source: "provider" | "built_in";
};

/** Who is asked for its list. */
export type MenuTarget = {
  kind: HostedKind;
  baseUrl: string;
  /** Tells keys apart: what one of them may use, another may not. */
  keyName: string;
  /** Called when the list is needed; undefined where there is no key after all. */
  key: () => Promise<string | undefined>;
};

export type ModelMenusOptions = { clock: Clock; log: Log; metrics: AgentMetrics };

const MENU_TIMEOUT_MS = 3_000;
/** A provider that failed is not asked again with every page that shows the menu. */
const FAILURE_KEPT_MS = 60_000;
const MAX_KEPT = 16;
const MAX_MODELS = 200;
const MAX_MODEL_CHARS = 200;

/** Well known as of November 2026, the most able first. */
const BUILT_IN: Readonly<Record<EngineKind, readonly string[]>> = {
  anthropic: [
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-fable-5-2",
    "claude-opus-5",
    "claude-sonnet-5",
    "claude-opus-4-8",
    "claude-sonnet-4-6",
    "claude-haiku-4-5",
  ],
  openai: ["gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-sol", "gpt-6-luna", "gpt-5.6", "gpt-5.5", "gpt-5.4", "gpt-5.4-mini"],
  localmodel: ["gpt-oss:20b", "gpt-oss:120b", "qwen3:8b", "qwen3:32b", "llama3.3:70b", "mistral-small:24b"],
  // What a program offers, only the program knows.
  cli: ["default"],
};

/** Hosted models that answer no questions. */
const OTHER_USE =
  /embed|whisper|tts|dall-e|image|audio|realtime|moderation|transcribe|sora|davinci|babbage|gpt-live|search-preview/;

type Kept = { menu: Promise<ModelMenu>; untilMs: number };

/** Lists of models, the providers' own where they can be had: kept for a while, and bounded in size and time. */
export class ModelMenus {
  readonly #options: ModelMenusOptions;
  readonly #kept = new Map<string, Kept>();

  constructor(options: ModelMenusOptions) {
    this.#options = options;
  }

  static builtIn(kind: EngineKind): ModelMenu {
    return { models: BUILT_IN[kind], source: "built_in" };
  }

  /** Those who ask at the same time share one request. */
  async of(target: MenuTarget): Promise<ModelMenu> {
    const { clock } = this.#options;
    const name = JSON.stringify([target.kind, target.baseUrl, target.keyName]);
    const known = this.#kept.get(name);
    if (known !== undefined && clock.monotonicMs() < known.untilMs) return await known.menu;
    const kept: Kept = { menu: this.#asked(target), untilMs: Number.POSITIVE_INFINITY };
    this.#kept.delete(name);
    this.#kept.set(name, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    try {
      const menu = await kept.menu;
      const keptMs = menu.source === "provider" ? AGENT_LIMITS.menuMs : FAILURE_KEPT_MS;
      kept.untilMs = clock.monotonicMs() + keptMs;
      return menu;
    } catch (error) {
      // Records cannot be read: that is no matter of the provider, and may pass at once.
      if (this.#kept.get(name) === kept) this.#kept.delete(name);
      throw error;
    }
  }

  async #asked(target: MenuTarget): Promise<ModelMenu> {
    const { clock, log, metrics } = this.#options;
    const { kind } = target;
    const key = await target.key();
    if (key === undefined && kind !== "localmodel") return ModelMenus.builtIn(kind);
    const abort = new AbortController();
    const late = () => abort.abort(new DOMException(`no list within ${MENU_TIMEOUT_MS} ms`, "TimeoutError"));
    const timer = clock.after(MENU_TIMEOUT_MS, late, { background: true });
    try {
      const models = await modelsOf(target, key, abort.signal);
      // Readers are shown these, and a provider may say anything.
      return { models: models.filter((id) => key === undefined || !id.includes(key)), source: "provider" };
    } catch (error) {
      metrics.menuFailures.inc({ kind });
      log.info({ kind, reason: problemOf(error, key).message }, "the provider gave no list of models");
      return ModelMenus.builtIn(kind);
    } finally {
      timer.cancel();
    }
  }
}

const named = z.object({ data: z.array(z.object({ id: z.string() })) });
const tagged = z.object({ models: z.array(z.object({ name: z.string() })) });

async function modelsOf(
  { kind, baseUrl }: MenuTarget,
  key: string | undefined,
  signal: AbortSignal,
): Promise<readonly string[]> {
  switch (kind) {
    case "anthropic": {
      const headers = { "x-api-key": key ?? "", "anthropic-version": "2023-06-01" };
      const { data } = named.parse(await listAt(`${apiUrl(baseUrl)}/models?limit=${MAX_MODELS}`, headers, signal));
      return shown(data.map(({ id }) => id));
    }
    case "openai": {
      const headers = { authorization: `Bearer ${key ?? ""}` };
      const { data } = named.parse(await listAt(`${apiUrl(baseUrl)}/models`, headers, signal));
      return shown(data.map(({ id }) => id).filter((id) => !OTHER_USE.test(id)));
    }
    case "localmodel":
      return await localModels(baseUrl, signal);
  }
}

/** Servers of local models list what they have under tags; those that do not have the list of all the others. */
async function localModels(baseUrl: string, signal: AbortSignal): Promise<readonly string[]> {
  const root = apiUrl(baseUrl).slice(0, -"/v1".length);
  try {
    const { models } = tagged.parse(await listAt(`${root}/api/tags`, {}, signal));
    return shown(models.map(({ name }) => name));
  } catch (error) {
    if (signal.aborted) throw error;
    const { data } = named.parse(await listAt(`${root}/v1/models`, {}, signal));
    return shown(data.map(({ id }) => id));
  }
}

async function listAt(url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<unknown> {
  const response = await providerFetch(url, { headers: { accept: "application/json", ...headers }, signal });
  if (response.ok) return await response.json();
  // What it says may be a page of the address, and there is another list to show.
  throw new Error(`the status is ${response.status}`);
}

function shown(models: readonly string[]): readonly string[] {
  const fit = models.filter((id) => id !== "" && id.length <= MAX_MODEL_CHARS && !/\p{C}/u.test(id));
  return [...new Set(fit)].slice(0, MAX_MODELS);
}
