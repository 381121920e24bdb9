"""/v1/: the door for whatever speaks OpenAI's chat completions.

https://platform.openai.com/docs/api-reference/chat
"""
