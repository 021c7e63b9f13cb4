/** A regular expression that is wrong, or that cannot be said in RE2. */
export class PatternError extends Error {}

type Flags = { u: boolean; x: boolean };

/** Reads a pattern once from left to right, and gathers what it is in RE2. */
export class Reader {
  readonly out: string[] = [];
  readonly groups: (string | undefined)[] = [];
  flags: Flags = { u: true, x: false };
  hasWordBoundary = false;
  /** Whether what was read last may be repeated. */
  canRepeat = false;
  private at = 0;
  private readonly outer: Flags[] = [];
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  get isAtEnd(): boolean {
    return this.at >= this.text.length;
  }

  get depth(): number {
    return this.outer.length;
  }

  /** The next character; empty at the end. */
  peek(): string {
    const code = this.text.codePointAt(this.at);
    return code === undefined ? "" : String.fromCodePoint(code);
  }

  /** Reads a character. */
  next(): string {
    const char = this.peek();
    if (char === "") throw this.error("it ends too early");
    this.at += char.length;
    return char;
  }

  /** Reads what the expression finds here, if it does. */
  take(expression: RegExp): RegExpExecArray | undefined {
    const found = expression.exec(this.text.slice(this.at, this.at + 64));
    if (found === null) return undefined;
    this.at += found[0].length;
    return found;
  }

  emit(re2: string, canRepeat = true): void {
    this.out.push(re2);
    this.canRepeat = canRepeat;
  }

  /** Opens a group; flags set inside end with it. */
  push(re2: string, name: string | undefined, captures = true): void {
    this.outer.push(this.flags);
    if (captures) this.groups.push(name);
    if (re2 !== "") this.emit(re2, false);
  }

  /** Closes the group. */
  pop(): void {
    this.flags = this.outer.pop() ?? this.flags;
    this.emit(")");
  }

  error(message: string): PatternError {
    return new PatternError(`regular expression ${JSON.stringify(this.text)}: ${message}`);
  }
}
