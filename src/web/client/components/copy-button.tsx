import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { announce } from "../base/announce.ts";
import { clock } from "../base/clock.ts";
import { copyText } from "../base/copy-text.ts";
import { Button } from "./button.tsx";

const SHOWN_MS = 1_500;

/** Copies `text`; the icon says for a moment that it is done. */
export function CopyButton({ text, label }: { text: string; label: string }): JSX.Element {
  const [state, setState] = useState<"ready" | "copied" | "failed">("ready");
  const copy = async () => {
    const isCopied = await copyText(text);
    setState(isCopied ? "copied" : "failed");
    announce(isCopied ? "Copied" : "The browser does not allow copying");
    clock.after(SHOWN_MS, () => setState("ready"));
  };
  const icon = { ready: "copy", copied: "check", failed: "warning" } as const;
  return <Button look="quiet" icon={icon[state]} label={label} onClick={() => void copy()} />;
}
