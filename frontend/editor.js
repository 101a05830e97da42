// The editor of the workbench: what is needed of CodeMirror, and no more. Built by build.mjs into one file.
export { EditorState, Compartment } from "@codemirror/state";
export { EditorView, keymap, placeholder, drawSelection, highlightSpecialChars } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { autocompletion, completionKeymap, closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
export { HighlightStyle, syntaxHighlighting, bracketMatching } from "@codemirror/language";
export { setDiagnostics, lintKeymap, forceLinting } from "@codemirror/lint";
export { sql, SQLDialect } from "@codemirror/lang-sql";
export { tags } from "@lezer/highlight";
