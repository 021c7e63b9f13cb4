import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Button } from "./button.tsx";

export type DialogProps = {
  title: string;
  children: ComponentChildren;
  /** Buttons at the end. */
  actions?: ComponentChildren;
  onClose: () => void;
  width?: "narrow" | "wide";
  /** Whether Escape, a click beside it and the button at the top close it. */
  isClosable?: boolean;
  class?: string;
};

const FIRST = ".dialog-body :is(input, select, textarea, button, a[href])";

/** A native modal dialog: the browser keeps the focus inside, and gives it back. It is open while it is drawn. */
export function Dialog(props: DialogProps): JSX.Element {
  const { title, children, actions, onClose, width = "narrow", isClosable = true } = props;
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  // At once: what is typed after the key that opens it is meant for it.
  useLayoutEffect(() => {
    const { current } = dialog;
    current?.showModal();
    // Not the button that closes it, which comes first.
    current?.querySelector<HTMLElement>(FIRST)?.focus();
    return () => current?.close();
  }, []);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- Escape does the same as the click beside it
    <dialog
      ref={dialog}
      class={`dialog dialog-${width}${props.class === undefined ? "" : ` ${props.class}`}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (isClosable) onClose();
      }}
      onClick={(event) => {
        if (isClosable && event.target === dialog.current) onClose();
      }}
    >
      <div class="dialog-content">
        <header class="dialog-head">
          <h2 id={id}>{title}</h2>
          {isClosable && <Button look="quiet" icon="close" label="Close" onClick={onClose} />}
        </header>
        <div class="dialog-body">{children}</div>
        {actions !== undefined && <footer class="dialog-actions">{actions}</footer>}
      </div>
    </dialog>
  );
}
