"""The lab's site: participants register, upload runs to a shared task and are ranked."""
