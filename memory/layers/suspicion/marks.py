"""What gives a command away in the text as it stands: roles, calls of tools, addresses."""

import re

# Of words that are spelled with something between all their letters, the letters.
SQUEEZED = re.compile(
    r"(?:ignore|disregard|forget)(?:all|the|any|your)*(?:previous|prior|above|instructions|rules)"
    r"|systemprompt|youarenow|jailbreak"
)

MARKS = re.compile(
    # What models are given between messages.
    r"<\|[\w ]{2,40}\|>|\[/?INST\]|<</?SYS>>"
    r"|</?(?:system|assistant|instructions?|tool_calls?|function_calls?|tool_response"
    r"|invoke)\b[^>\n]{0,80}>"
    r"|</(?:memory|transcript)\b"
    r"|#{2,6}\s*(?:system|instructions?|assistant|human)\b\s*:?"
    # Roles; the extractive summariser writes “Assistant: “…””, which quotes.
    r"|^[\s>*•-]*(?:\*\*)?(?:assistant|human)(?:\*\*)?\s*[:：](?:\*\*)?[ \t]*(?![“\"„«\s])\S"
    r"|^[\s>*•-]*(?:system|developer)\s*[:：]\s*(?:you\b|ignore|disregard|forget|always|never"
    r"|from now|new\b"
    r"|override|the (?:assistant|model|ai)\b|your\b|enable)"
    # Calls of tools.
    r"|\{\s*\"(?:name|tool|function|action"
    r"|recipient_name)\"\s*:\s*\"[^\"]{1,80}\"\s*,\s*\"(?:arguments"
    r"|parameters|input|args|action_input)\"|\"(?:tool_calls|function_call)\"\s*:"
    # What would be fetched with something in its address, or run.
    r"|!\[[^\]\n]{0,200}\]\(\s*<?(?:https?:)?//[^)\s]{1,500}?[?&=]"
    r"|<img\b[^>]{0,300}?\bsrc\s*=\s*[\"']?https?://[^>\s]{0,300}?\?"
    r"|\]\(\s*(?:javascript|data|vbscript):"
    r"|\bcurl\b[^\n|]{0,200}\|\s*(?:sudo\s+)?(?:ba|z)?sh\b",
    re.IGNORECASE | re.MULTILINE,
)
