import { CliError, EXIT } from "../../client/failure.ts";

/**
 * Words in unit files of systemd (systemd.syntax(7), systemd.service(5)). A word is always between double quotes, where
 * whatever is not known to be plain is written as an escape, so that no text can end the word, the line or the section,
 * name a specifier or a variable.
 */

const PLAIN = /^[A-Za-z0-9_@+=:,./-]$/;

/** A word behind the program of `ExecStart=`. */
export function argumentWord(text: string): string {
  // `$` would name a variable; what is doubled stands for itself.
  return quoted(text, (char) => (char === "$" ? "$$" : undefined));
}

/** A word of `Environment=`: systemd names no variables in it, and takes no control characters but tab and newline. */
export function assignmentWord(name: string, value: string): string {
  refuse(/[\p{Cc}--[\t\n]]/v, value, name);
  return quoted(`${name}=${value}`, (char) => (char === "$" ? "$" : undefined));
}

/** The program of `ExecStart=`, of which systemd takes neither quotes nor control characters, and names no variables. */
export function programWord(path: string): string {
  refuse(/[\p{Cc}"'\\]/u, path, "the path of the program");
  if (!path.startsWith("/")) throw new Error(`${path} is not absolute`);
  return quoted(path, (char) => (char === "$" ? "$" : undefined));
}

function quoted(text: string, special: (char: string) => string | undefined): string {
  return `"${Array.from(text, (char) => special(char) ?? escaped(char)).join("")}"`;
}

function escaped(char: string): string {
  if (PLAIN.test(char)) return char;
  // A specifier is looked for after escapes are read.
  if (char === "%") return "%%";
  const code = char.codePointAt(0) ?? 0;
  if (code === 0 || (code >= 0xd800 && code <= 0xdfff)) throw new Error("text with NUL or half a character");
  if (code > 0xffff) return `\\U${code.toString(16).padStart(8, "0")}`;
  return code > 0x7f ? `\\u${code.toString(16).padStart(4, "0")}` : `\\x${code.toString(16).padStart(2, "0")}`;
}

function refuse(pattern: RegExp, text: string, what: string): void {
  const found = pattern.exec(text);
  if (found === null) return;
  const char = JSON.stringify(found[0]);
  throw new CliError(`${what} contains ${char}, which systemd does not take: choose another path`, EXIT.usage);
}
