import type { JSX } from "preact";
import { CopyButton } from "./copy-button.tsx";

/** A command or a text to copy. Long lines scroll, so the block can be reached with Tab. */
export function CodeBlock({ text, label }: { text: string; label: string }): JSX.Element {
  return (
    <div class="code-block">
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by the keyboard */}
      <pre tabIndex={0} aria-label={label}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} label={`Copy: ${label}`} />
    </div>
  );
}
