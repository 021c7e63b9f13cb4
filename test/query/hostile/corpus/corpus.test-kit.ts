import { seededRandom } from "../../../../src/core/random.ts";
import { quoteIdentifier, quoteText } from "../../../../src/io/duckdb/duckdb.ts";
import { Chooser } from "../../../../src/format/ndjson/generate-values.test-kit.ts";
import { FRAMES, framed, type Frame } from "./frames.test-kit.ts";
import { SEEDS, type Seed } from "./seeds.test-kit.ts";
import { isName, parseTemplate, render, slotsOf, type Slot, type Template } from "./template.test-kit.ts";
import * as texts from "./texts.test-kit.ts";
import type { HostileText, Target } from "./texts.test-kit.ts";

/**
 * Hostile statements: valid ones (`seeds.test-kit.ts`), alone or within another (`frames.test-kit.ts`), with names and
 * literals replaced by texts that do harm where one of them is taken for something else (`texts.test-kit.ts`).
 *
 * First comes what is tried in order: every text in the forms in which a hole was found, and a text of every kind in
 * every seed. The rest is drawn. The same seed makes the same statements.
 */
export type HostileStatement = {
  index: number;
  sql: string;
  seed: string;
  frame: string;
  /** What is in which slot. */
  fill: readonly { slot: string; text: HostileText }[];
};

export type CorpusOptions = { seed: number; count: number; target: Target };

/** At least `count` statements, each different. */
export function makeCorpus({ seed, count, target }: CorpusOptions): HostileStatement[] {
  const maker = new Maker(seed, target);
  maker.tryAllWhereHolesWere();
  maker.tryEveryKindInEverySeed();
  while (maker.made.size < count) maker.draw();
  return [...maker.made.values()];
}

/** How a statement is described where something is found in it. */
export function describeStatement({ index, seed, frame, fill }: HostileStatement): string {
  const what = fill.map(({ slot, text }) => `${slot} = ${text.kind} (${text.what})`).join(", ");
  return `#${index} ${seed}, ${frame}: ${what}`;
}

/** A seed with its slots, by what may stand in them. */
type ParsedSeed = Seed & { parsed: Template; names: string[]; literals: string[]; expressions: string[] };

const PARSED: readonly ParsedSeed[] = SEEDS.map(parseSeed);

function parseSeed(seed: Seed): ParsedSeed {
  const parsed = parseTemplate(seed.template);
  const slots = [...slotsOf(parsed)];
  const having = (test: (kind: Slot["kind"]) => boolean) =>
    slots.filter(([, kinds]) => [...kinds].some(test)).map(([name]) => name);
  return {
    ...seed,
    parsed,
    names: having(isName),
    literals: having((kind) => kind === "text"),
    expressions: having((kind) => kind === "expression"),
  };
}

const SCOPE_TEXTS = new Set(["path", "glob", "path through /proc", "duckdb_views", "sqlite_master", "duckdb_settings"]);

class Maker {
  readonly made = new Map<string, HostileStatement>();
  readonly #choose: Chooser;
  readonly #target: Target;
  readonly #plain: readonly HostileText[];
  readonly #expressions: readonly HostileText[];

  constructor(seed: number, target: Target) {
    this.#choose = new Chooser(seededRandom(seed));
    this.#target = target;
    this.#plain = [...texts.paths(target), ...texts.internalNames(), ...texts.quotes()];
    this.#expressions = texts.expressions(target);
  }

  tryAllWhereHolesWere(): void {
    for (const seed of PARSED.filter(({ thorough }) => thorough !== undefined)) {
      const some = seed.thorough === "scopes" ? this.#plain.filter(({ what }) => SCOPE_TEXTS.has(what)) : this.#plain;
      for (const text of some) this.#add(seed, frameOf("alone"), allOf(seed.names, text));
    }
    for (const frame of FRAMES) {
      const breaks = frame.closers.flatMap((closer) => this.#breaks(closer));
      for (const seed of PARSED.filter(({ thorough }) => thorough === "breaks")) {
        for (const text of breaks) this.#add(seed, frame, allOf(seed.names, text));
      }
      for (const seed of PARSED.filter(({ thorough }) => thorough === "names")) {
        for (let i = 0; i < 4; i++) this.#add(seed, frame, allOf(seed.names, this.#choose.pick(this.#plain)));
      }
    }
    for (const seed of PARSED.filter(({ expressions }) => expressions.length > 0)) {
      if (!/ AT \(|LIMIT|BETWEEN/.test(seed.template)) continue;
      for (const text of this.#expressions) this.#add(seed, frameOf("alone"), allOf(seed.expressions, text));
    }
  }

  tryEveryKindInEverySeed(): void {
    const kinds = [texts.paths(this.#target), texts.internalNames(), texts.quotes()];
    for (const seed of PARSED) {
      const frame = this.#frame(seed);
      const closer = this.#choose.pick(frame.closers);
      const breaks = [texts.rows(this.#target, closer), texts.statements(this.#target, closer)];
      for (const list of [...kinds, ...breaks]) {
        const text = this.#choose.pick(list);
        if (seed.names.length > 0) this.#add(seed, frame, allOf(seed.names, text));
        if (seed.literals.length > 0) this.#add(seed, frame, allOf(seed.literals, text));
        const slots = [...seed.names, ...seed.literals];
        if (slots.length > 0) this.#add(seed, frame, allOf([this.#choose.pick(slots)], this.#choose.pick(list)));
      }
      if (seed.expressions.length > 0) this.#add(seed, frame, allOf(seed.expressions, this.#expression()));
    }
  }

  draw(): void {
    const seed = this.#choose.pick(PARSED);
    const frame = this.#frame(seed);
    const text = this.#text(frame);
    const fill = new Map<string, HostileText>();
    // Half of the time one text for all, so that what refers to a name still finds it.
    const isOne = this.#choose.chance(0.5);
    for (const slot of [...seed.names, ...seed.literals]) {
      if (this.#choose.chance(0.6)) fill.set(slot, isOne ? text : this.#text(frame));
    }
    for (const slot of seed.expressions) if (this.#choose.chance(0.4)) fill.set(slot, this.#expression());
    if (fill.size > 0) this.#add(seed, frame, fill, true);
  }

  #frame({ isCommand }: Seed): Frame {
    return isCommand ? frameOf("alone") : this.#choose.pick(FRAMES);
  }

  #breaks(closer: string): HostileText[] {
    return [...texts.rows(this.#target, closer), ...texts.statements(this.#target, closer)];
  }

  #expression(): HostileText {
    return this.#choose.pick(this.#expressions);
  }

  #text(frame: Frame): HostileText {
    const choose = this.#choose;
    if (choose.chance(0.4)) return choose.pick(this.#plain);
    const any = choose.chance(0.2) ? choose.pick(FRAMES) : frame;
    const text = choose.pick(this.#breaks(choose.pick(any.closers)));
    if (choose.chance(0.7)) return text;
    // A quote before it, for where somebody quotes and does not double.
    const opening = choose.pick(['"', "'", '" ', "' ", '".* ', "*/ ", "\n", "$$ "]);
    return { ...text, text: opening + text.text };
  }

  #add(seed: ParsedSeed, frame: Frame, fill: ReadonlyMap<string, HostileText>, isLoose = false): void {
    const query = render(seed.parsed, (slot) => {
      const text = fill.get(slot.name);
      return text === undefined ? undefined : this.#write(slot, text, isLoose);
    });
    const sql = framed(frame, query);
    if (this.made.has(sql)) return;
    const filled = [...fill].map(([slot, text]) => ({ slot, text }));
    this.made.set(sql, { index: this.made.size, sql, seed: seed.name, frame: frame.name, fill: filled });
  }

  /** The text as SQL: as a name or a literal, now and then in another spelling, or without the quotes it needs. */
  #write({ kind }: Slot, { kind: textKind, text }: HostileText, isLoose: boolean): string {
    if (textKind === "expression" || kind === "expression") return textKind === "expression" ? text : quoteText(text);
    const plain = isName(kind) ? quoteIdentifier(text) : quoteText(text);
    if (!isLoose || this.#choose.chance(0.85)) return plain;
    const escaped = text.replaceAll("\\", "\\\\").replaceAll("'", "\\'");
    const others = [quoteText(text), `e'${escaped}'`, `$q$${text}$q$`, text, `"${text}"`, `'${text}'`];
    return this.#choose.pick(others);
  }
}

function frameOf(name: string): Frame {
  const frame = FRAMES.find((one) => one.name === name);
  if (frame === undefined) throw new Error(`there is no frame ${name}`);
  return frame;
}

function allOf(slots: readonly string[], text: HostileText): ReadonlyMap<string, HostileText> {
  return new Map(slots.map((slot) => [slot, text]));
}
